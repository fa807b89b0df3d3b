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

test('a name with dots ends where a field follows', () => {
  const changed = changedConfiguration(CONFIG, { path: 'clusters.10.0.0.1.server', value: 'https://y' })
  assert.deepEqual(fieldsOf(changed, '10.0.0.1'), { server: 'https://y', 'certificate-authority-data': 'Y2E=' })
})

test('a stanza that is not there is made by set and refused by unset', () => {
  const changed = changedConfiguration(CONFIG, { path: 'clusters.new.insecure-skip-tls-verify', value: 'true' })
  assert.deepEqual(fieldsOf(changed, 'new'), { server: '', 'insecure-skip-tls-verify': true })
  assert.throws(() => changedConfiguration(CONFIG, { path: 'clusters.new.server' }), {
    message: 'current map key `new` is invalid',
  })
})

test('bytes are base64 unless they are raw', () => {
  const path = 'clusters.10.0.0.1.certificate-authority-data'
  const raw = changedConfiguration(CONFIG, { path, value: 'ca', isRaw: true })
  assert.deepEqual(fieldsOf(raw, '10.0.0.1'), { server: 'https://x', 'certificate-authority-data': 'Y2E=' })
  assert.throws(() => changedConfiguration(CONFIG, { path, value: 'a#' }), {
    message: 'error decoding input value: illegal base64 data at input byte 1',
  })
})

test('impersonation is set by the name that upstream has for it inside', () => {
  const changed = changedConfiguration(CONFIG, { path: 'users.me.act-as', value: 'you' })
  assert.equal(changed.users.get('me')?.fields['as'], 'you')
  assert.throws(() => changedConfiguration(CONFIG, { path: 'users.me.exec.command', value: 'x' }), {
    message: 'unable to parse one or more field values of users.me.exec.command',
  })
})

test('minifying leaves what the current context uses', () => {
  assert.deepEqual([...minified(CONFIG).clusters.keys()], ['10.0.0.1'])
  assert.throws(() => minified({ ...CONFIG, currentContext: 'b' }), { message: 'cannot locate context b' })
})

test('what is shown has no secrets, and an empty list is null', () => {
  const shown = configurationValue(redacted({ ...CONFIG, contexts: new Map() }))
  assert.match(JSON.stringify(shown), /DATA\+OMITTED.*"token":"REDACTED"/)
  assert.equal(shown['contexts'], null)
})
