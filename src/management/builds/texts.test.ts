/** Tests redaction of secrets, the log of Operations, advice on failures, and generated SSH keys. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { explainFailure } from './explain.ts'
import { logAfter, OperationLog } from './operation-log.ts'
import { createRedaction } from './redact.ts'
import { createSshKey } from './ssh-key.ts'

describe('redaction of secrets in text', () => {
  const key = createSshKey('k', createSeededRandom(1)).privateKey
  const redact = createRedaction([
    key,
    'credential-of-agents',
    { 'a.password': 'hunter2hunter2', list: ['in-a-list'] },
    '',
  ])

  it('removes keys, credentials and passwords', () => {
    for (const secret of ['credential-of-agents', 'hunter2hunter2', 'in-a-list', key, key.split('\n')[1] ?? ''])
      assert.equal(redact(`before ${secret} after`).includes(secret), false)
  })

  it('removes private keys that it does not know', () => {
    const text =
      'x -----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY----- y -----BEGIN PRIVATE KEY-----\nabc'
    assert.equal(redact(text), 'x [hidden] y [hidden]')
  })

  it('leaves other texts alone', () => {
    assert.equal(redact('[etcd] m1: start etcd'), '[etcd] m1: start etcd')
    assert.equal(createRedaction(['yes'])('yes'), 'yes')
  })
})

describe('log of an Operation', () => {
  const open = (before = { text: '', bytes: 0 }): OperationLog =>
    new OperationLog(before, createVirtualClock(), createRedaction(['the-secret']))

  it('keeps lines with their times, without secrets', () => {
    const log = open()
    log.add('one\ntwo the-secret')
    assert.equal(log.stored.text.replaceAll(/\S+Z /g, ''), 'one\ntwo [hidden]\n')
  })

  it('drops the oldest lines, and sends followers only new lines', () => {
    const log = open()
    for (let at = 0; at < 5000; at++) log.add(`line ${at} ${'x'.repeat(80)}`)
    const { text, bytes } = log.stored
    assert.ok(text.length <= 256 << 10 && bytes > text.length)
    assert.match(text, /^\S+Z line \d+ x+\n/)
    const next = open(log.stored)
    next.add('the last one')
    assert.match(logAfter(next.stored, bytes), /^\S+Z the last one\n$/)
    assert.equal(logAfter(next.stored, next.stored.bytes), '')
    assert.equal(logAfter(next.stored, 0), next.stored.text)
  })
})

describe('explainFailure() for failures on machines', () => {
  for (const [text, hint] of [
    ['m1: Host key verification failed.', /forget its key/],
    ['m1: root@10.0.0.1: Permission denied (publickey).', /sshPublicKey/],
    ['m1: ssh: connect to host 10.0.0.1 port 22: Connection refused', /cannot be reached by SSH/],
    ['m1: sudo: a password is required', /without a password/],
  ] as const)
    it(`says what to do about "${text}"`, () => assert.match(explainFailure(text), hint))

  it('leaves other failures as they are', () => assert.equal(explainFailure('a'), 'a'))
})
