import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changedConfiguration } from './properties.ts'
import { minified, redacted } from './showing.ts'
import { configurationOf, configurationValue } from './stanzas.ts'

const CONFIG = configurationOf(
  {
    'current-context': 'a',
    clusters: [
      { name: '10.0.0.1', cluster: { server: 'https://x', 'certificate-authority-data': 'Y2E=' } },
      { name: 'unused', cluster: {} },
    ],
    users: [{ name: 'me', user: { token: 't', exec: { command: 'run' } } }],
    contexts: [{ name: 'a', context: { cluster: '10.0.0.1', user: 'me' } }],
  },
  'file',
)

const fieldsOf = (config: typeof CONFIG, name: string): unknown => config.clusters.get(name)?.fields

test('a kubeconfig property path may contain a map key with dots before a field name', () => {
  const changed = changedConfiguration(CONFIG, { path: 'clusters.10.0.0.1.server', value: 'https://y' })
  assert.deepEqual(fieldsOf(changed, '10.0.0.1'), { server: 'https://y', 'certificate-authority-data': 'Y2E=' })
})

test('kubectl config set creates a missing stanza, and unset rejects it', () => {
  const changed = changedConfiguration(CONFIG, { path: 'clusters.new.insecure-skip-tls-verify', value: 'true' })
  assert.deepEqual(fieldsOf(changed, 'new'), { server: '', 'insecure-skip-tls-verify': true })
  assert.throws(() => changedConfiguration(CONFIG, { path: 'clusters.new.server' }), {
    message: 'current map key `new` is invalid',
  })
})

test('kubectl config set reads bytes as base64 without --set-raw-bytes', () => {
  const path = 'clusters.10.0.0.1.certificate-authority-data'
  const raw = changedConfiguration(CONFIG, { path, value: 'ca', isRaw: true })
  assert.deepEqual(fieldsOf(raw, '10.0.0.1'), { server: 'https://x', 'certificate-authority-data': 'Y2E=' })
  assert.throws(() => changedConfiguration(CONFIG, { path, value: 'a#' }), {
    message: 'error decoding input value: illegal base64 data at input byte 1',
  })
})

test("kubectl config set uses upstream's internal field name for impersonation", () => {
  const changed = changedConfiguration(CONFIG, { path: 'users.me.act-as', value: 'you' })
  assert.equal(changed.users.get('me')?.fields['as'], 'you')
  assert.throws(() => changedConfiguration(CONFIG, { path: 'users.me.exec.command', value: 'x' }), {
    message: 'unable to parse one or more field values of users.me.exec.command',
  })
})

test('kubectl config view --minify keeps only what the current context uses', () => {
  assert.deepEqual([...minified(CONFIG).clusters.keys()], ['10.0.0.1'])
  assert.throws(() => minified({ ...CONFIG, currentContext: 'b' }), { message: 'cannot locate context b' })
})

test('kubectl config view hides secrets, and shows an empty list as null', () => {
  const shown = configurationValue(redacted({ ...CONFIG, contexts: new Map() }))
  assert.match(JSON.stringify(shown), /DATA\+OMITTED.*"token":"REDACTED"/)
  assert.equal(shown['contexts'], null)
})
