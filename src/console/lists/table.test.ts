/** Tests how Tables of API servers become rows. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { rowsOf } from './table.ts'

describe('rowsOf()', () => {
  it('keeps the beginning of long cells, and other cells as they are', () => {
    const [row] = rowsOf({ rows: [{ cells: ['web', 3, null, 'x'.repeat(1_000_000)], object: {} }] })
    assert.deepEqual(row?.cells.slice(0, 3), ['web', 3, null])
    assert.equal(String(row?.cells[3]).length, 2002)
    assert.deepEqual(rowsOf({ rows: [{ cells: ['x'.repeat(2000)] }] })[0]?.cells, ['x'.repeat(2000)])
  })
})
