/** Tests the messages of exec and attach. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { decodeMessage, encodeInput, encodeSize } from './streams.ts'

const message = (channel: number, text: string): ArrayBuffer =>
  Uint8Array.from([channel, ...new TextEncoder().encode(text)]).buffer

describe('messages of exec', () => {
  it('carry output of both streams', () => {
    for (const channel of [1, 2]) {
      const decoded = decodeMessage(message(channel, 'héllo'))
      assert.equal(decoded?.type === 'output' && new TextDecoder().decode(decoded.bytes), 'héllo')
    }
  })

  it('say how the command ended', () => {
    assert.deepEqual(decodeMessage(message(3, '{"status":"Success"}')), { type: 'end', message: '' })
    const failure = '{"status":"Failure","message":"command terminated with exit code 3"}'
    assert.deepEqual(decodeMessage(message(3, failure)), {
      type: 'end',
      message: 'command terminated with exit code 3',
    })
    assert.deepEqual(decodeMessage(message(3, 'no such container')), { type: 'end', message: 'no such container' })
  })

  it('ignore channels that a server does not send', () => {
    assert.equal(decodeMessage(message(0, 'x')), undefined)
    assert.equal(decodeMessage(new ArrayBuffer(0)), undefined)
  })

  it('send input and the size of the terminal', () => {
    assert.deepEqual([...encodeInput(new TextEncoder().encode('ls'))], [0, 108, 115])
    assert.deepEqual(new TextDecoder().decode(encodeSize(80, 24)), '\u0004{"Width":80,"Height":24}')
  })
})
