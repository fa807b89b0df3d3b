import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type DbusMessage, decodeMessage, encodeMessage, MESSAGE, messageLength, typesIn } from './message.ts'

test('a D-Bus signature is split into complete types', () => {
  assert.deepEqual(typesIn(''), [])
  assert.deepEqual(typesIn('sa{sv}(iu)aay'), ['s', 'a{sv}', '(iu)', 'aay'])
  assert.throws(() => typesIn('s?'), /Not a signature/)
  assert.throws(() => typesIn('(s'), /Not a signature/)
})

const MESSAGES: readonly DbusMessage[] = [
  { type: MESSAGE.call, serial: 1, path: '/a', interface: 'b.c', member: 'D', destination: 'e.f', body: [] },
  {
    type: MESSAGE.signal,
    serial: 7,
    path: '/org/freedesktop/login1',
    interface: 'org.freedesktop.login1.Manager',
    member: 'PrepareForShutdown',
    sender: ':1.2',
    signature: 'b',
    body: [true],
  },
  {
    type: MESSAGE.answer,
    serial: 2 ** 31,
    answers: 3,
    signature: 'vsiata(su)',
    body: [{ signature: 't', value: 5_000_000n }, 'wörd', -1, [1n, 2n ** 63n], [['x', 1]]],
  },
  { type: MESSAGE.error, serial: 4, answers: 3, errorName: 'a.b', signature: 'y', body: [9] },
]

for (const message of MESSAGES) {
  test(`a D-Bus message round-trips: ${message.member ?? message.type}`, () => {
    const bytes = encodeMessage(message)
    assert.equal(messageLength(bytes), bytes.length)
    assert.deepEqual(decodeMessage(bytes), message)
  })
}

test('big-endian D-Bus messages are parsed', () => {
  // A signal with the serial 9 and no fields but its member, "Hi".
  const bytes = Buffer.from('4204000100000000000000090000000b0301730000000002486900000000000000'.slice(0, 64), 'hex')
  assert.equal(messageLength(bytes), 32)
  assert.deepEqual(decodeMessage(bytes), { type: MESSAGE.signal, serial: 9, member: 'Hi', body: [] })
})

test('invalid D-Bus messages are rejected', () => {
  assert.equal(messageLength(Buffer.alloc(15)), undefined)
  assert.throws(() => messageLength(Buffer.alloc(16, 0xff)), /too long/)
  const whole = encodeMessage(MESSAGES[1] as DbusMessage)
  assert.throws(() => decodeMessage(whole.subarray(0, whole.length - 2)), /too soon/)
})
