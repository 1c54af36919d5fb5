// An open package: a manifest, and code that is verified and loaded when a plan first needs it. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/abi/Manifest.h"
#include "runtime/package/ByteSource.h"
#include "runtime/package/SharedObject.h"

namespace normc::runtime {

using namespace package;  // names of the manifest's structs

class Package {
 public:
  /// `label` names the package in errors: its path, or "in memory".
  static normc_status open(std::unique_ptr<ByteSource> source, std::string label,
                           std::shared_ptr<const Package>& package);

  const Manifest& manifest() const { return manifest_; }
  const std::string& json() const { return json_; }
  const std::string& label() const { return label_; }

  /// Reads the bytes of one blob and verifies their hash.
  normc_status read(size_t blob, std::vector<char>& bytes) const;
  normc_status verify(size_t blob) const;
  /// Loads the CPU code of a blob; every plan shares one object.
  normc_status load(size_t blob, std::shared_ptr<const SharedObject>& code) const;

 private:
  std::unique_ptr<ByteSource> source_;
  std::string label_, json_;
  Manifest manifest_;
  mutable std::mutex mutex_;  // guards code_; never taken by execute
  mutable std::vector<std::shared_ptr<const SharedObject>> code_;
};

}  // namespace normc::runtime
