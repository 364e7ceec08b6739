// Embedding: out[i, j] = table[ids[i], j], with the wrap of negative indices and the bounds check.
module {
  func.func @nest(%ids: memref<32xi64>, %table: memref<5000x256xf32>, %out: memref<32x256xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c256 = arith.constant 256 : index
    %rows = arith.constant 5000 : i64
    %none = arith.constant 0 : i64
    scf.parallel (%i, %j) = (%c0, %c0) to (%c32, %c256) step (%c1, %c1) {
      %id = memref.load %ids[%i] : memref<32xi64>
      %negative = arith.cmpi slt, %id, %none : i64
      %wrapped = arith.addi %id, %rows : i64
      %chosen = arith.select %negative, %wrapped, %id : i64
      %inside = arith.cmpi slt, %chosen, %rows : i64
      cf.assert %inside, "index out of bounds"
      %row = arith.index_cast %chosen : i64 to index
      %x = memref.load %table[%row, %j] : memref<5000x256xf32>
      memref.store %x, %out[%i, %j] : memref<32x256xf32>
      scf.reduce
    }
    return
  }
}
