// A report that can be kept: tables, medians and ratios to others as JSON without the samples, and pictures
// over the number of features.
#pragma once

#include <string>
#include <vector>

#include "bench/cpu/Table.h"

namespace normc::bench {

/// Returns the tables over all heats: means, ratios at each number of features, the cost of odd ones if
/// `withCliffs`, and what could not run.
std::string tablesOfAll(const std::vector<Heat>&, bool withCliffs);

/// Makes the folder of a report. Throws std::runtime_error if report.txt cannot be written there.
void makeReportFolder(const std::string& folder);

/// report.txt, report.json and the pictures, in a folder that is made. Without gnuplot there are no pictures,
/// and report.txt says so. Throws where something cannot be written.
void writeReport(const std::string& folder, const std::string& command, const std::vector<Heat>&,
                 const Machine&, const std::vector<std::string>& peers, bool withCliffs);

}  // namespace normc::bench
