import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { defineFlags, parseFlags } from '#lib/flags/flags.ts'

import { advertisedAddress, isLoopback, ownNames } from './addresses.ts'
import { APISERVER_FLAGS, type Settings } from './flags/flags.ts'
import { planServer } from './flags/plan.ts'

function read(...args: string[]): Settings {
  return parseFlags(defineFlags(APISERVER_FLAGS), args).values as unknown as Settings
}

describe('advertised address of the API server', () => {
  for (const [args, expected] of [
    [['--advertise-address=192.0.2.1', '--bind-address=192.0.2.9'], '192.0.2.1'],
    [['--bind-address=192.0.2.9'], '192.0.2.9'],
    [['--bind-address=2001:db8::1'], '2001:db8::1'],
    [['--advertise-address=127.0.0.1'], '127.0.0.1'],
  ] as const) {
    it(`is ${expected} with the flags ${args.join(' ')}`, () =>
      assert.equal(advertisedAddress(read(...args)), expected))
  }

  it('is an address of the machine if the server listens on all addresses or on loopback', () => {
    for (const bound of ['0.0.0.0', '::', '127.0.0.1']) {
      assert.match(advertisedAddress(read(`--bind-address=${bound}`)), /^[\d.]+$|:/)
    }
  })

  it('is recognized as loopback in all forms', () => {
    assert.deepEqual(['127.0.0.1', '127.1.2.3', '::1', '10.0.0.1', '::2'].map(isLoopback), [
      true,
      true,
      true,
      false,
      false,
    ])
  })
})

describe('ownNames() of the API server certificate', () => {
  it('contains all names of the server for users and pods, each once', () => {
    const flags = read(
      '--datastore=memory',
      '--service-cluster-ip-range=10.96.0.0/12,fd00::/108',
      '--external-hostname=api.example.com',
      '--service-account-issuer=a',
      '--service-account-signing-key-file=b',
    )
    const { plan } = planServer(flags)
    assert.ok(plan)
    assert.deepEqual(ownNames(flags, plan, '127.0.0.1'), [
      'localhost',
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      'api.example.com',
      '127.0.0.1',
      '::1',
      '10.96.0.1',
      'fd00::1',
    ])
  })
})
