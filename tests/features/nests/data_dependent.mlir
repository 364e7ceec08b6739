// Ragged rows: the length of each is loaded; and a search loop.
module {
  func.func @nest(%lengths: memref<10xi64>, %x: memref<10x64xf32>, %out: memref<10xf32>, %found: memref<1xindex>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c10 = arith.constant 10 : index
    scf.for %i = %c0 to %c10 step %c1 {
      %n64 = memref.load %lengths[%i] : memref<10xi64>
      %n = arith.index_cast %n64 : i64 to index
      scf.for %j = %c0 to %n step %c1 {
        %v = memref.load %x[%i, %j] : memref<10x64xf32>
        memref.store %v, %out[%i] : memref<10xf32>
      }
    }
    %last = scf.while (%p = %c0) : (index) -> index {
      %v = memref.load %x[%p, %c0] : memref<10x64xf32>
      %zero = arith.constant 0.0 : f32
      %go = arith.cmpf ogt, %v, %zero : f32
      scf.condition(%go) %p : index
    } do {
    ^bb0(%q: index):
      %next = arith.addi %q, %c1 : index
      scf.yield %next : index
    }
    memref.store %last, %found[%c0] : memref<1xindex>
    return
  }
}
