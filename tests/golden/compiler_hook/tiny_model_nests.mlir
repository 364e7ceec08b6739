// nest_0: aten.repeat.default
module {
  func.func @nest(%arg0: memref<4x8xf32>, %arg1: memref<4x3x8xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c1 = arith.constant 1 : index
    scf.parallel (%arg2, %arg3, %arg4) = (%c0, %c0, %c0) to (%c4, %c3, %c8) step (%c1, %c1, %c1) {
      %0 = memref.load %arg0[%arg2, %arg4] : memref<4x8xf32>
      memref.store %0, %arg1[%arg2, %arg3, %arg4] : memref<4x3x8xf32>
      scf.reduce 
    }
    return
  }
}

// nest_1: aten.sum.dim_IntList, aten.div.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.add.Tensor, aten.rsqrt.default
module {
  func.func @nest(%arg0: memref<4x1xf32>, %arg1: memref<4x12xf32, strided<[24, 1], offset: ?>>, %arg2: memref<4x1xf32>, %arg3: memref<4x12xf32>, %arg4: memref<4x1xf32>, %arg5: memref<4x1xf32>, %arg6: memref<12xf32>, %arg7: memref<12xf32>, %arg8: memref<4x12xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0.000000e+00 : f32
    %c12 = arith.constant 12 : index
    %cst_0 = arith.constant 1.200000e+01 : f32
    %cst_1 = arith.constant 9.99999974E-6 : f32
    scf.parallel (%arg9) = (%c0) to (%c4) step (%c1) {
      memref.store %cst, %arg0[%arg9, %c0] : memref<4x1xf32>
      scf.for %arg10 = %c0 to %c12 step %c1 {
        %6 = memref.load %arg1[%arg9, %arg10] : memref<4x12xf32, strided<[24, 1], offset: ?>>
        %7 = memref.load %arg0[%arg9, %c0] : memref<4x1xf32>
        %8 = arith.addf %6, %7 : f32
        memref.store %8, %arg0[%arg9, %c0] : memref<4x1xf32>
      }
      %0 = memref.load %arg0[%arg9, %c0] : memref<4x1xf32>
      %1 = arith.divf %0, %cst_0 : f32
      memref.store %1, %arg2[%arg9, %c0] : memref<4x1xf32>
      scf.parallel (%arg10) = (%c0) to (%c12) step (%c1) {
        %6 = memref.load %arg1[%arg9, %arg10] : memref<4x12xf32, strided<[24, 1], offset: ?>>
        %7 = memref.load %arg2[%arg9, %c0] : memref<4x1xf32>
        %8 = arith.subf %6, %7 : f32
        memref.store %8, %arg3[%arg9, %arg10] : memref<4x12xf32>
        scf.reduce 
      }
      memref.store %cst, %arg4[%arg9, %c0] : memref<4x1xf32>
      scf.for %arg10 = %c0 to %c12 step %c1 {
        %6 = memref.load %arg3[%arg9, %arg10] : memref<4x12xf32>
        %7 = memref.load %arg4[%arg9, %c0] : memref<4x1xf32>
        %8 = arith.mulf %6, %6 : f32
        %9 = arith.addf %8, %7 : f32
        memref.store %9, %arg4[%arg9, %c0] : memref<4x1xf32>
      }
      %2 = memref.load %arg4[%arg9, %c0] : memref<4x1xf32>
      %3 = arith.divf %2, %cst_0 : f32
      %4 = arith.addf %3, %cst_1 : f32
      %5 = math.rsqrt %4 : f32
      memref.store %5, %arg5[%arg9, %c0] : memref<4x1xf32>
      scf.parallel (%arg10) = (%c0) to (%c12) step (%c1) {
        %6 = memref.load %arg3[%arg9, %arg10] : memref<4x12xf32>
        %7 = memref.load %arg5[%arg9, %c0] : memref<4x1xf32>
        %8 = memref.load %arg6[%arg10] : memref<12xf32>
        %9 = memref.load %arg7[%arg10] : memref<12xf32>
        %10 = arith.mulf %6, %7 : f32
        %11 = arith.mulf %10, %8 : f32
        %12 = arith.addf %11, %9 : f32
        memref.store %12, %arg8[%arg9, %arg10] : memref<4x12xf32>
        scf.reduce 
      }
      scf.reduce 
    }
    return
  }
}

// nest_2: aten.mm.default, aten.add.Tensor, aten.mul.Tensor, aten.erf.default
module {
  func.func @nest(%arg0: memref<4x12xf32>, %arg1: memref<4x8xf32, strided<[12, 1], offset: ?>>, %arg2: memref<12x8xf32>, %arg3: memref<12xf32>, %arg4: memref<4x12xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c12 = arith.constant 12 : index
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0.000000e+00 : f32
    %c8 = arith.constant 8 : index
    %cst_0 = arith.constant 0.707106769 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 5.000000e-01 : f32
    scf.parallel (%arg5, %arg6) = (%c0, %c0) to (%c4, %c12) step (%c1, %c1) {
      memref.store %cst, %arg0[%arg5, %arg6] : memref<4x12xf32>
      scf.for %arg7 = %c0 to %c8 step %c1 {
        %8 = memref.load %arg1[%arg5, %arg7] : memref<4x8xf32, strided<[12, 1], offset: ?>>
        %9 = memref.load %arg2[%arg6, %arg7] : memref<12x8xf32>
        %10 = memref.load %arg0[%arg5, %arg6] : memref<4x12xf32>
        %11 = arith.mulf %8, %9 : f32
        %12 = arith.addf %10, %11 : f32
        memref.store %12, %arg0[%arg5, %arg6] : memref<4x12xf32>
      }
      %0 = memref.load %arg0[%arg5, %arg6] : memref<4x12xf32>
      %1 = memref.load %arg3[%arg6] : memref<12xf32>
      %2 = arith.addf %0, %1 : f32
      %3 = arith.mulf %2, %cst_0 : f32
      %4 = math.erf %3 : f32
      %5 = arith.addf %4, %cst_1 : f32
      %6 = arith.mulf %2, %cst_2 : f32
      %7 = arith.mulf %6, %5 : f32
      memref.store %7, %arg4[%arg5, %arg6] : memref<4x12xf32>
      scf.reduce 
    }
    return
  }
}

// nest_3: aten.mm.default
module {
  func.func @nest(%arg0: memref<4x4xf32>, %arg1: memref<4x12xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0.000000e+00 : f32
    %c12 = arith.constant 12 : index
    scf.parallel (%arg2, %arg3) = (%c0, %c0) to (%c4, %c4) step (%c1, %c1) {
      memref.store %cst, %arg0[%arg2, %arg3] : memref<4x4xf32>
      scf.for %arg4 = %c0 to %c12 step %c1 {
        %0 = memref.load %arg1[%arg2, %arg4] : memref<4x12xf32>
        %1 = memref.load %arg1[%arg3, %arg4] : memref<4x12xf32>
        %2 = memref.load %arg0[%arg2, %arg3] : memref<4x4xf32>
        %3 = arith.mulf %0, %1 : f32
        %4 = arith.addf %2, %3 : f32
        memref.store %4, %arg0[%arg2, %arg3] : memref<4x4xf32>
      }
      scf.reduce 
    }
    return
  }
}

// nest_4: aten.amax.default, aten.sub.Tensor, aten.exp.default, aten.sum.dim_IntList
module {
  func.func @nest(%arg0: memref<4x1xf32>, %arg1: memref<4x4xf32>, %arg2: memref<4x4xf32>, %arg3: memref<4x1xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0xFF800000 : f32
    %expand_shape = memref.expand_shape %arg1 [[0, 1], [2]] output_shape [4, 1, 4] : memref<4x4xf32> into memref<4x1x4xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    scf.parallel (%arg4) = (%c0) to (%c4) step (%c1) {
      memref.store %cst, %arg0[%arg4, %c0] : memref<4x1xf32>
      scf.for %arg5 = %c0 to %c4 step %c1 {
        %0 = memref.load %expand_shape[%arg4, %c0, %arg5] : memref<4x1x4xf32>
        %1 = memref.load %arg0[%arg4, %c0] : memref<4x1xf32>
        %2 = arith.maximumf %0, %1 : f32
        memref.store %2, %arg0[%arg4, %c0] : memref<4x1xf32>
      }
      scf.parallel (%arg5) = (%c0) to (%c4) step (%c1) {
        %0 = memref.load %arg1[%arg4, %arg5] : memref<4x4xf32>
        %1 = memref.load %arg0[%arg4, %c0] : memref<4x1xf32>
        %2 = arith.subf %0, %1 : f32
        %3 = math.exp %2 : f32
        memref.store %3, %arg2[%arg4, %arg5] : memref<4x4xf32>
        scf.reduce 
      }
      memref.store %cst_0, %arg3[%arg4, %c0] : memref<4x1xf32>
      scf.for %arg5 = %c0 to %c4 step %c1 {
        %0 = memref.load %arg2[%arg4, %arg5] : memref<4x4xf32>
        %1 = memref.load %arg3[%arg4, %c0] : memref<4x1xf32>
        %2 = arith.addf %0, %1 : f32
        memref.store %2, %arg3[%arg4, %c0] : memref<4x1xf32>
      }
      scf.reduce 
    }
    return
  }
}

// nest_5: aten.div.Tensor, aten.sum.dim_IntList
module {
  func.func @nest(%arg0: memref<f32>, %arg1: memref<4x4xf32>, %arg2: memref<4x1xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    memref.store %cst, %arg0[] : memref<f32>
    scf.for %arg3 = %c0 to %c4 step %c1 {
      scf.for %arg4 = %c0 to %c4 step %c1 {
        %0 = memref.load %arg1[%arg3, %arg4] : memref<4x4xf32>
        %1 = memref.load %arg2[%arg3, %c0] : memref<4x1xf32>
        %2 = memref.load %arg0[] : memref<f32>
        %3 = arith.divf %0, %1 : f32
        %4 = arith.addf %3, %2 : f32
        memref.store %4, %arg0[] : memref<f32>
      }
    }
    return
  }
}
