import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { secret } from './secret.ts'
import { contextWith, trialOf } from './trial.suite.ts'

const trial = trialOf(secret)
const metadata = { name: 's', namespace: 'ns' }
const base64 = (text: string): string => Buffer.from(text).toString('base64')

describe('Secret', () => {
  it('has type Opaque by default, and gets data from stringData', () => {
    const { object, errors } = trial.create({ metadata, data: { a: 'eA==', b: 'eA==' }, stringData: { b: 'text' } })
    assert.deepEqual(errors, [])
    assert.deepEqual(
      [object.type, object.data, object.stringData],
      ['Opaque', { a: 'eA==', b: base64('text') }, undefined],
    )
  })

  const account = 'kubernetes.io/service-account.name'
  const refusals: [string, Record<string, unknown>, string[]][] = [
    ['kubernetes.io/service-account-token', {}, [`metadata.annotations[${account}]: Required value`]],
    ['kubernetes.io/dockercfg', {}, ['data[.dockercfg]: Required value']],
    [
      'kubernetes.io/dockercfg',
      { data: { '.dockercfg': base64('x') } },
      [
        'data[.dockercfg]: Invalid value: "<secret contents redacted>": invalid character \'x\' looking for beginning of value',
      ],
    ],
    [
      'kubernetes.io/dockerconfigjson',
      { data: { '.dockerconfigjson': base64('[]') } },
      [
        'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": json: cannot unmarshal array into Go value of type map[string]interface {}',
      ],
    ],
    ['kubernetes.io/basic-auth', {}, ['data[username]: Required value', 'data[password]: Required value']],
    ['kubernetes.io/ssh-auth', { data: { 'ssh-privatekey': '' } }, ['data[ssh-privatekey]: Required value']],
    ['kubernetes.io/tls', {}, ['data[tls.crt]: Required value', 'data[tls.key]: Required value']],
    ['Opaque', { data: { '..': '' } }, ['data[..]: Invalid value: "..": must not be \'..\'']],
    [
      'Opaque',
      { data: { a: base64('x'.repeat(1024 * 1024 + 1)) } },
      ['data: Too long: may not be more than 1048576 bytes'],
    ],
  ]
  for (const [type, fields, errors] of refusals) {
    it(`rejects type ${type} with error ${JSON.stringify(errors[0]?.slice(0, 60))}`, () => {
      assert.deepEqual(trial.create({ metadata, type, ...fields }).errors, errors)
    })
  }

  it('of type basic-auth requires a username or password, which may be empty', () => {
    assert.deepEqual(trial.create({ metadata, type: 'kubernetes.io/basic-auth', data: { password: '' } }).errors, [])
  })

  it('rejects changes of its type, and all changes if it is immutable', () => {
    const old = { metadata, data: { a: 'eA==' }, immutable: true }
    assert.deepEqual(trial.update({ metadata, type: 'other', data: {} }, old).errors, [
      'type: Invalid value: "other": field is immutable',
      'immutable: Forbidden: field is immutable when `immutable` is set',
      'data: Forbidden: field is immutable when `immutable` is set',
    ])
    assert.deepEqual(trial.update(old, old).errors, [])
  })

  it('warns of an unusable TLS certificate and key', () => {
    const warnings = (data: Record<string, string>): string[] =>
      trial.create({ metadata, type: 'kubernetes.io/tls', data }, contextWith()).warnings
    assert.deepEqual(warnings({ 'tls.crt': base64('x'), 'tls.key': '' }), [
      'tls: failed to find any PEM data in certificate input',
    ])
    const key = base64('-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n')
    assert.deepEqual(warnings({ 'tls.crt': key, 'tls.key': '' }), [
      'tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched',
    ])
  })

  it('prints its type and the number of its values', () => {
    const row = trial.cells({
      metadata: { ...metadata, creationTimestamp: '2025-12-31T23:59:00Z' },
      data: { a: '', b: '' },
    })
    assert.deepEqual(row, ['s', 'Opaque', 2, '60s'])
    assert.equal(secret.fieldSelectors?.['type']?.(trial.load({ metadata })), 'Opaque')
    assert.equal(secret.unknownField?.('x'), 'field label not supported: x')
  })
})
