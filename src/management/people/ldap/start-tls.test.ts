import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { isAccepted } from './start-tls.ts'

/** An extended response with this message ID and result, without texts. */
const answer = (id: number, result: number): Buffer =>
  Buffer.of(0x30, 0x0c, 0x02, 0x01, id, 0x78, 0x07, 0x0a, 0x01, result, 0x04, 0x00, 0x04, 0x00)

describe('LDAP response to StartTLS', () => {
  it('is accepted when it is a success, in short and long form', () => {
    const short = answer(1, 0)
    assert.equal(isAccepted(short), true)
    assert.equal(isAccepted(Buffer.concat([Buffer.of(0x30, 0x84, 0, 0, 0, 0x0c), short.subarray(2)])), true)
  })

  it('is incomplete at every point before its end', () => {
    const whole = answer(1, 0)
    for (let length = 0; length < whole.length; length++) assert.equal(isAccepted(whole.subarray(0, length)), false)
  })

  const refused: readonly (readonly [string, Buffer])[] = [
    ['a result code other than success', answer(1, 52)],
    ['another message ID', answer(2, 0)],
    ['bytes after it', Buffer.concat([answer(1, 0), Buffer.of(0x30)])],
    ['a whole message after it', Buffer.concat([answer(1, 0), answer(2, 0)])],
    [
      'a message of another type',
      Buffer.of(0x30, 0x0c, 0x02, 0x01, 1, 0x61, 0x07, 0x0a, 0x01, 0, 0x04, 0x00, 0x04, 0x00),
    ],
    ['a greeting of a mail server instead of LDAP', Buffer.from('220 mail.example ESMTP\r\n')],
    ['an empty message', Buffer.of(0x30, 0x00)],
    ['an endless length', Buffer.of(0x30, 0x80)],
    ['a length of 5 bytes', Buffer.of(0x30, 0x85, 1, 1, 1, 1, 1)],
    ['more than a kibibyte', Buffer.concat([Buffer.of(0x30, 0x82, 0x10, 0x00), Buffer.alloc(1200)])],
  ]
  for (const [what, bytes] of refused)
    it(`is refused with ${what}`, () => assert.throws(() => isAccepted(bytes), Error))
})
