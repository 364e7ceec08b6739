// A residue: for each i in order, out[ids[i]] += x[i].
module {
  func.func @nest(%ids: memref<100xi64>, %x: memref<100xf32>, %out: memref<1000xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c100 = arith.constant 100 : index
    scf.for %i = %c0 to %c100 step %c1 {
      %id = memref.load %ids[%i] : memref<100xi64>
      %place = arith.index_cast %id : i64 to index
      %v = memref.load %x[%i] : memref<100xf32>
      %old = memref.load %out[%place] : memref<1000xf32>
      %new = arith.addf %old, %v : f32
      memref.store %new, %out[%place] : memref<1000xf32>
    }
    return
  }
}
