import assert from 'node:assert/strict'
import { test } from 'node:test'

import { HttpError } from '#lib/http/http-error.ts'

import { failureText, userHeaders } from './front-proxy.ts'

test('the X-Remote headers to an aggregated server have one header per value, with encoded keys', () => {
  const extra = { 'scopes/a': ['one', 'two'], 'ü%': ['x'], Mixed: ['y'] }
  assert.deepEqual(userHeaders({ name: 'jane', uid: 'u', groups: ['a', 'b'], extra }), {
    'x-remote-user': 'jane',
    'x-remote-uid': 'u',
    'x-remote-group': ['a', 'b'],
    'x-remote-extra-scopes%2fa': ['one', 'two'],
    'x-remote-extra-%c3%bc%25': ['x'],
    'x-remote-extra-Mixed': ['y'],
  })
  assert.deepEqual(userHeaders({ name: 'x', uid: '', groups: [], extra: {} }), { 'x-remote-user': 'x' })
})

test('failureText() returns "context deadline exceeded" for a timeout', () => {
  assert.equal(failureText(new HttpError('timeout', 'late'), 'a:1'), 'context deadline exceeded')
  assert.equal(failureText(new Error('other'), 'a:1'), 'other')
})
