// A maximum begins at -infinity, a lane beyond the end counts as that, and lanes end in one maximum.
// RUN: %opt norm-to-loops %s | %check
// CHECK:       arith.constant dense<0xFF800000> : vector<8xf32>
// CHECK:       arith.maximumf
// CHECK:       %[[NONE:.*]] = arith.constant dense<0xFF800000> : vector<8xf32>
// CHECK:       %[[TERM:.*]] = arith.select {{.*}}, %[[NONE]] : vector<8xi1>, vector<8xf32>
// CHECK:       arith.maximumf {{.*}}, %[[TERM]] : vector<8xf32>
// CHECK-NOT:   arith.addf
// CHECK:       vector.reduction <maximumf>, {{.*}} : vector<8xf32> into f32
norm.kernel @k features_last attributes {problem = "", statistics = f32, groups = 1, pre_groups = 1, features = 12, numbers = [],
    schedule = #norm.schedule<strategy = resident, vector = 8, rows = 1, unroll = 1, tile = 1, grain = 1>} {
  norm.tensor @x : f32 [segment, row, feature] tensor read
  norm.tensor @work.largest : f32 [segment, row] workspace both
  norm.phase @reduce statistics over [segment, row] {
    norm.slab run [segment, row] {
      %largest = norm.sweep reads [@x] writes [] into [] by [max] {
      ^bb0(%x: f32):
        norm.yield %x : f32
      } : f32
      norm.store %largest, @work.largest : f32
    }
  }
}
