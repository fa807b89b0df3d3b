import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { loadAuthorizers, parseAuthorizationConfig } from './authorization-config.ts'

const source = (...authorizers: object[]): string =>
  JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthorizationConfiguration', authorizers })

const WEBHOOK = {
  timeout: '3s',
  subjectAccessReviewVersion: 'v1',
  failurePolicy: 'Deny',
  connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: '/hook.conf' },
}
const webhook = (more: object): object => ({ type: 'Webhook', name: 'w', webhook: { ...WEBHOOK, ...more } })

const KUBECONFIG = JSON.stringify({
  'current-context': 'x',
  contexts: [{ name: 'x', context: { cluster: 'c' } }],
  clusters: [{ name: 'c', cluster: { server: 'https://hook.example.com' } }],
})

describe('AuthorizationConfiguration file', () => {
  it('lists authorizers in order, including several webhooks', async () => {
    const settings = parseAuthorizationConfig(
      source(
        { type: 'Node', name: 'node' },
        webhook({ authorizedTTL: '1m', cacheUnauthorizedRequests: false }),
        { ...webhook({ failurePolicy: 'NoOpinion', subjectAccessReviewVersion: 'v1beta1' }), name: 'v' },
        { type: 'RBAC', name: 'rbac' },
      ),
    )
    const clock = createVirtualClock()
    const loaded = await loadAuthorizers(settings, { clock, readFile: () => Promise.resolve(KUBECONFIG) })
    assert.deepEqual(
      loaded.map(({ type, name }) => [type, name]),
      [
        ['Node', 'node'],
        ['Webhook', 'w'],
        ['Webhook', 'v'],
        ['RBAC', 'rbac'],
      ],
    )
    const shown = loaded.flatMap((one) => one.webhook ?? []).map(({ send: _send, clock: _clock, ...rest }) => rest)
    assert.deepEqual(shown, [
      { version: 'v1', authorizedTtlMs: 60_000, unauthorizedTtlMs: 0, failurePolicy: 'Deny', conditions: [] },
      {
        version: 'v1beta1',
        authorizedTtlMs: 300_000,
        unauthorizedTtlMs: 30_000,
        failurePolicy: 'NoOpinion',
        conditions: [],
      },
    ])
  })

  it('is rejected if a kubeconfig is missing', async () => {
    const readFile = (): Promise<string> => Promise.reject(Object.assign(new Error('gone'), { code: 'ENOENT' }))
    const settings = parseAuthorizationConfig(source(webhook({})))
    await assert.rejects(loadAuthorizers(settings, { clock: createVirtualClock(), readFile }), {
      message:
        'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/hook.conf": error loading file: stat /hook.conf: no such file or directory',
    })
  })

  const one = 'authorizers[0]'
  const wrong: readonly (readonly [string, string, string])[] = [
    ['no authorizers', source(), 'authorizers: Required value: at least one authorization mode must be defined'],
    [
      'another kind',
      '{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration"}',
      'failed to load AuthorizationConfiguration from file: expected AuthorizationConfiguration, got *apiserver.AuthenticationConfiguration',
    ],
    [
      'an unknown field',
      source({ type: 'RBAC', name: 'a', foo: 1 }),
      'failed to load AuthorizationConfiguration from file: strict decoding error: unknown field "authorizers[0].foo"',
    ],
    ['no type', source({ name: 'a' }), `${one}.type: Required value`],
    [
      'an unknown type',
      source({ type: 'Foo', name: 'a' }),
      `${one}.type: Unsupported value: "Foo": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"`,
    ],
    [
      'type ABAC, which is not supported',
      source({ type: 'ABAC', name: 'a' }),
      `${one}.type: Invalid value: "ABAC": is not supported by this server: use RBAC`,
    ],
    [
      'a repeated type and a repeated name',
      source({ type: 'RBAC', name: 'a' }, { type: 'RBAC', name: 'b' }, { type: 'Node', name: 'a' }),
      '[authorizers[1].type: Duplicate value: "RBAC", authorizers[2].name: Duplicate value: "a"]',
    ],
    [
      'webhook settings for another type',
      source({ type: 'RBAC', webhook: {} }),
      `[${one}.name: Required value, ${one}.webhook: Invalid value: "non-null": may only be specified when type=Webhook]`,
    ],
    [
      'type Webhook without its settings',
      source({ type: 'Webhook', name: 'w' }),
      `${one}.webhook: Required value: required when type=Webhook`,
    ],
    [
      'an empty webhook',
      source({ type: 'Webhook', name: 'w', webhook: {} }),
      `[${['timeout', 'subjectAccessReviewVersion', 'failurePolicy', 'connectionInfo.type'].map((name) => `${one}.${name}: Required value`).join(', ')}]`,
    ],
    [
      'invalid times',
      source(webhook({ timeout: '31s', authorizedTTL: '-1s' })),
      `[${one}.timeout: Invalid value: "31s": must be > 0s and <= 30s, ${one}.authorizedTTL: Invalid value: "-1s": must be > 0s]`,
    ],
    [
      'a relative path',
      source(webhook({ connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: 'rel' } })),
      `${one}.connectionInfo.kubeConfigFile: Invalid value: "rel": must be an absolute path`,
    ],
    [
      'an unknown connection type',
      source(webhook({ connectionInfo: { type: 'Y' } })),
      `${one}.connectionInfo.type: Unsupported value: {"Type":"Y","KubeConfigFile":null}: supported values: "InClusterConfig", "KubeConfigFile"`,
    ],
    [
      'match conditions that are invalid, missing, repeated or not boolean',
      source(
        webhook({
          matchConditionSubjectAccessReviewVersion: 'v1',
          matchConditions: ['a', ' ', 'a', 'request.user'].map((expression) => ({ expression })),
        }),
      ),
      `[${one}.matchConditions[0].expression: Invalid value: "a": compilation failed: ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n | a\n | ^, ${one}.matchConditions[1].expression: Required value, ${one}.matchConditions[2].expression: Duplicate value: "a", ${one}.matchConditions[3].expression: Invalid value: "request.user": must evaluate to bool but got string]`,
    ],
  ]
  for (const [what, text, message] of wrong) {
    it(`is refused if it has ${what}`, () => assert.throws(() => parseAuthorizationConfig(text), { message }))
  }
})
