import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { bePatient, Stalls } from './stalls.ts'

describe('detection of a stalled receiver', () => {
  it('reports a stall if nothing was read for the whole period', () => {
    const stalls = new Stalls(30)
    const socket = { writableLength: 100, bytesWritten: 500 }
    assert.deepEqual(
      [0, 10, 29, 30].map((nowMs) => stalls.isStalled(socket, nowMs)),
      [false, false, false, true],
    )
  })

  it('reports no stall if the send queue became empty, longer or shorter', () => {
    for (const other of [0, 99, 101]) {
      const stalls = new Stalls(30)
      const stream = { writableLength: 100 }
      assert.equal(stalls.isStalled(stream, 0), false)
      stream.writableLength = other
      assert.equal(stalls.isStalled(stream, 29), false)
      stream.writableLength = 100
      assert.equal(stalls.isStalled(stream, 31), false)
      assert.equal(stalls.isStalled(stream, 60), false)
    }
  })

  it('reports no stall if the send queue was emptied and filled to the same length', () => {
    const stalls = new Stalls(30)
    const socket = { writableLength: 100, bytesWritten: 500 }
    assert.equal(stalls.isStalled(socket, 0), false)
    socket.bytesWritten = 600
    assert.equal(stalls.isStalled(socket, 40), false)
  })

  it('reports no stall before the end of extra time', () => {
    const stalls = new Stalls(30)
    const socket = { writableLength: 100 }
    const end = bePatient(socket)
    assert.equal(stalls.isStalled(socket, 0), false)
    assert.equal(stalls.isStalled(socket, 100), false)
    end()
    assert.equal(stalls.isStalled(socket, 100), false)
    assert.equal(stalls.isStalled(socket, 130), true)
  })
})
