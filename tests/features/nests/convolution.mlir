// A 3x3 convolution with stride 2: 4 images of 8 channels, 17x17 to 8x8, 16 output channels.
module {
  func.func @nest(%in: memref<4x8x17x17xf32>, %w: memref<16x8x3x3xf32>, %out: memref<4x16x8x8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    scf.parallel (%n, %f, %y, %x) = (%c0, %c0, %c0, %c0) to (%c4, %c16, %c8, %c8) step (%c1, %c1, %c1, %c1) {
      scf.for %c = %c0 to %c8 step %c1 {
        scf.for %ky = %c0 to %c3 step %c1 {
          scf.for %kx = %c0 to %c3 step %c1 {
            %iy = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%y, %ky)
            %x2 = arith.muli %x, %c2 : index
            %ix = arith.addi %x2, %kx : index
            %p = memref.load %in[%n, %c, %iy, %ix] : memref<4x8x17x17xf32>
            %q = memref.load %w[%f, %c, %ky, %kx] : memref<16x8x3x3xf32>
            %r = memref.load %out[%n, %f, %y, %x] : memref<4x16x8x8xf32>
            %m = arith.mulf %p, %q : f32
            %s = arith.addf %r, %m : f32
            memref.store %s, %out[%n, %f, %y, %x] : memref<4x16x8x8xf32>
          }
        }
      }
      scf.reduce
    }
    return
  }
}
