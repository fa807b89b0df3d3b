import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { decodePreference, validatePreference } from './preference.ts'

const HEAD = 'apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n'

const NO_LOG = (): void => undefined

describe('decodePreference() for kuberc', () => {
  it('logs which document of the file it uses, and why it skips others', () => {
    const lines: string[] = []
    decodePreference('f', `kind: Other\napiVersion: a/v1\n---\n${HEAD}`, (place, text) =>
      lines.push(`${place} ${text}`),
    )
    assert.deepEqual(lines, [
      'marshal.go:71 kuberc: strict decoding error for entry 1 in f: no kind "Other" is registered for version "a/v1" in scheme "pkg/runtime/scheme.go:111"',
      'marshal.go:94 kuberc: using entry 2 (kubectl.config.k8s.io/v1beta1) in f',
    ])
  })
})

describe('kuberc file', () => {
  it('is accepted in both API versions, and its first valid document is used', () => {
    const old =
      'apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\noverrides: [{ command: get, flags: [{ name: a, default: b }] }]\n'
    const decoded = decodePreference('f', `kind: Other\n---\n${old}`, NO_LOG)
    assert.deepEqual(decoded?.preference.defaults, [{ command: 'get', options: [{ name: 'a', default: 'b' }] }])
    assert.equal(decoded?.strictError, '')
  })

  it('may contain unknown fields, which cause a warning', () => {
    const decoded = decodePreference('f', `${HEAD}x: 1\naliases: [{ name: a, command: get, z: 2 }]\n`, NO_LOG)
    assert.equal(decoded?.preference.aliases[0]?.name, 'a')
    assert.equal(decoded?.strictError, 'strict decoding error: unknown field "aliases[0].z", unknown field "x"')
  })

  it('counts as absent if empty, and is invalid without a valid document', () => {
    assert.equal(decodePreference('f', '---\n', NO_LOG), undefined)
    assert.throws(
      () => decodePreference('f', `${HEAD}defaults: text\n`, NO_LOG),
      /no valid preferences found in f, use --v=5/,
    )
  })

  const rows: readonly (readonly [name: string, text: string, problem: RegExp])[] = [
    [
      'an alias that begins with a dash',
      'aliases: [{ name: a-b }]',
      /invalid alias name, can only include alphabetical/,
    ],
    ['a repeated alias', 'aliases: [{ name: a }, { name: a }]', /duplicate alias name a/],
    [
      'a flag name with dashes',
      'defaults: [{ command: get, options: [{ name: --x }] }]',
      /flag name --x should be in long form/,
    ],
    ['an unknown policy', 'credentialPluginPolicy: X', /unknown plugin policy: "X"/],
    ['no allowlist', 'credentialPluginPolicy: Allowlist', /but allowlist is unspecified/],
    [
      'an empty allowlist',
      'credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: []',
      /allowlist is empty; use "DenyAll" policy instead/,
    ],
    [
      'an allowlist although the plugin policy does not use it',
      'credentialPluginAllowlist: [{ command: x }]',
      /plugin policy is "" but allowlist is non-nil/,
    ],
    [
      'an empty entry',
      'credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{}]',
      /empty allowlist entry #1/,
    ],
    [
      'a path with ..',
      'credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{ command: /a/../b }]',
      /non-normalized file path: "\/a\/..\/b" vs "\/b"/,
    ],
  ]
  for (const [name, text, problem] of rows) {
    it(`is refused if it has ${name}`, () => {
      const decoded = decodePreference('f', `${HEAD}${text}\n`, NO_LOG)
      assert.ok(decoded !== undefined)
      assert.throws(() => validatePreference(decoded.preference), problem)
    })
  }
})
