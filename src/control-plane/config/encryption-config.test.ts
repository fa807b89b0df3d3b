import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { parseEncryptionConfig } from './encryption-config.ts'

const secret = (bytes: number): string => Buffer.alloc(bytes, 1).toString('base64')
const keyed = (type: string, ...keys: object[]): object => ({ [type]: { keys } })
const GOOD = keyed('aesgcm', { name: 'k', secret: secret(32) })
const kms = (more: object = {}): object => ({
  kms: { apiVersion: 'v2', name: 'vault', endpoint: 'unix:///run/kms.sock', ...more },
})

const text = (...resources: object[]): string =>
  stringifyYaml({ kind: 'EncryptionConfiguration', apiVersion: 'apiserver.config.k8s.io/v1', resources })
const rule = (providers: object[], resources = ['secrets']): object => ({ resources, providers })

describe('EncryptionConfiguration file', () => {
  it('maps resources to encryption providers', () => {
    const config = parseEncryptionConfig(
      'f',
      text(
        rule([keyed('secretbox', { name: 's', secret: secret(32) }), kms({ timeout: '2s' }), { identity: {} }]),
        rule([keyed('aescbc', { name: 'c', secret: secret(16) })], ['*.apps', 'widgets.example.com']),
        rule([kms({ name: 'abstract', endpoint: 'unix:///@kms' })], ['*.*']),
      ),
    )
    assert.deepEqual(config.resources, [
      {
        resources: ['secrets'],
        providers: [
          { type: 'secretbox', keys: [{ name: 's', secret: Buffer.alloc(32, 1) }] },
          { type: 'kms', name: 'vault', socket: '/run/kms.sock', timeoutMs: 2000 },
          { type: 'identity' },
        ],
      },
      {
        resources: ['*.apps', 'widgets.example.com'],
        providers: [{ type: 'aescbc', keys: [{ name: 'c', secret: Buffer.alloc(16, 1) }] }],
      },
      { resources: ['*.*'], providers: [{ type: 'kms', name: 'abstract', socket: '\0kms', timeoutMs: 3000 }] },
    ])
  })

  const first = 'resources[0].providers[0]'
  const refusals: [what: string, source: string, message: string | RegExp][] = [
    [
      'no content',
      '',
      'error while parsing file: error while loading file: encryption provider configuration file "f" is empty',
    ],
    [
      'another kind',
      'kind: Pod\napiVersion: v1\n',
      /^error while parsing file: error decoding encryption provider configuration file "f": no kind "Pod" is registered for version "v1"/,
    ],
    [
      'an unknown field',
      text({ ...rule([GOOD]), colour: 'red' }),
      'error while parsing file: error decoding encryption provider configuration file "f": strict decoding error: unknown field "resources[0].colour"',
    ],
    ['no rules', text(), 'error while parsing file: resources: Required value: at least one resources is required'],
    [
      'a rule without resources',
      text({}),
      'error while parsing file: [resources[0].resources: Required value: at least one resources[0].resources is required, resources[0].providers: Required value: at least one resources[0].providers is required]',
    ],
    [
      'no provider in an element',
      text(rule([{}])),
      `error while parsing file: ${first}: Invalid value: {"AESGCM":null,"AESCBC":null,"Secretbox":null,"Identity":null,"KMS":null}: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity`,
    ],
    [
      'two providers in one element',
      text(rule([{ ...GOOD, identity: {} }])),
      `error while parsing file: ${first}: Invalid value: {"AESGCM":{"Keys":[{"Name":"k","Secret":"[REDACTED]"}]},"AESCBC":null,"Secretbox":null,"Identity":{},"KMS":null}: more than one provider specified in a single element, should split into different list elements`,
    ],
    [
      'no keys',
      text(rule([keyed('aesgcm')])),
      `error while parsing file: ${first}.aesgcm.keys: Required value: at least one keys is required`,
    ],
    [
      'a key without name and secret',
      text(rule([keyed('aescbc', {})])),
      `error while parsing file: [${first}.aescbc.keys[0].name: Required value: name is a mandatory field for a key, ${first}.aescbc.keys[0].secret: Required value: secret is a mandatory field for a key]`,
    ],
    [
      'a secret that is not base64',
      text(rule([keyed('aescbc', { name: 'k', secret: '?' })])),
      `error while parsing file: ${first}.aescbc.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded`,
    ],
    [
      'a short key',
      text(rule([keyed('aesgcm', { name: 'k', secret: 'YQ==' })])),
      `error while parsing file: ${first}.aesgcm.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 1, expected one of [16 24 32]`,
    ],
    [
      'a short key of secretbox',
      text(rule([keyed('secretbox', { name: 'k', secret: secret(16) })])),
      `error while parsing file: ${first}.secretbox.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 16, expected one of [32]`,
    ],
    ...(
      [
        ['Secrets', 'resource name should not contain capital letters'],
        ['*', "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"],
        ['serviceipallocations', 'resources which do not have REST API/s cannot be encrypted'],
        [
          'events.events.k8s.io',
          "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
        ],
        ['ingresses.extensions', "'extensions' group has been removed and cannot be used for encryption"],
        ['secrets.*', 'encrypting the same resource across groups is not supported'],
      ] as const
    ).map(([name, detail]): [string, string, string] => [
      `the resource ${name}`,
      text(rule([GOOD], [name])),
      `error while parsing file: resources[0].resources[0]: Invalid value: "${name}": ${detail}`,
    ]),
    [
      'a resource twice',
      text(rule([GOOD], ['secrets', 'secrets'])),
      'error while parsing file: resources[0].resources: Invalid value: ["secrets","secrets"]: the same resource cannot be specified multiple times',
    ],
    [
      'a resource and its whole group',
      text(rule([GOOD], ['secrets', '*.'])),
      `error while parsing file: resources[0].resources: Invalid value: ["secrets","*."]: using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked`,
    ],
    [
      'a rule that an earlier rule hides',
      text(rule([GOOD], ['*.']), rule([GOOD])),
      'error while building transformers: resource "secrets" is masked by earlier rule "*."',
    ],
    [
      'an empty plugin',
      text(rule([{ kms: {} }])),
      `error while parsing file: [${first}.kms.name: Required value: name is a mandatory field for a provider, ${first}.kms.endpoint: Invalid value: "": endpoint is a mandatory field for a kms]`,
    ],
    [
      'a plugin with wrong settings',
      text(rule([kms({ name: 'a:b', timeout: '0s', endpoint: 'tcp://localhost', cachesize: 5 })])),
      `error while parsing file: [${first}.kms.name: Invalid value: "a:b": invalid KMS provider name a:b, must not contain ':', ${first}.kms.timeout: Invalid value: "0s": timeout should be a positive value, ${first}.kms.endpoint: Invalid value: "tcp://localhost": unsupported scheme "tcp" for KMS provider, only unix is supported, ${first}.kms.cachesize: Invalid value: 5: cachesize is not supported in v2]`,
    ],
    [
      'two plugins with one name',
      text(rule([kms(), kms()])),
      'error while parsing file: resources[0].providers[1].kms.name: Invalid value: "vault": duplicate KMS provider name vault, names must be unique',
    ],
    [
      'an unknown KMS version',
      text(rule([kms({ apiVersion: 'v3' })])),
      `error while parsing file: ${first}.kms.apiVersion: Invalid value: "v3": unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported`,
    ],
    [
      'KMS v1',
      text(rule([kms({ apiVersion: 'v1' })])),
      /^error while building transformers: KMSv1 is deprecated .*KMSv1=true/,
    ],
  ]
  for (const [what, source, message] of refusals) {
    it(`is refused if it has ${what}`, () => assert.throws(() => parseEncryptionConfig('f', source), { message }))
  }
})
