import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { loadAdmissionConfig } from './admission-config.ts'
import type { AdmissionFileSettings } from './admission-plugins.ts'

function load(
  files: Readonly<Record<string, unknown>>,
  enable: readonly string[] = [],
): Promise<AdmissionFileSettings> {
  const readFile = (path: string): Promise<string> =>
    Object.hasOwn(files, path)
      ? Promise.resolve(JSON.stringify(files[path]))
      : Promise.reject(Object.assign(new Error('gone'), { code: 'ENOENT' }))
  return loadAdmissionConfig('etc/admission.yaml', { readFile, enable, disable: [] })
}

const config = (...plugins: object[]): Record<string, unknown> => ({
  'etc/admission.yaml': { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AdmissionConfiguration', plugins },
})

const podSecurity = (rest: object): object => ({
  name: 'PodSecurity',
  configuration: {
    apiVersion: 'pod-security.admission.config.k8s.io/v1',
    kind: 'PodSecurityConfiguration',
    ...rest,
  },
})

const eventLimits = (limits: object[]): object => ({
  name: 'EventRateLimit',
  configuration: { apiVersion: 'eventratelimit.admission.k8s.io/v1alpha1', kind: 'Configuration', limits },
})

const webhooks = (name: string, rest: object): object => ({
  name,
  configuration: { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'WebhookAdmissionConfiguration', ...rest },
})

const tolerations = (rest: object): object => ({
  name: 'PodTolerationRestriction',
  configuration: {
    apiVersion: 'podtolerationrestriction.admission.k8s.io/v1alpha1',
    kind: 'Configuration',
    ...rest,
  },
})

const imagePolicy = (policy: object): object => ({
  name: 'ImagePolicyWebhook',
  configuration: { imagePolicy: policy },
})

describe('AdmissionConfiguration file', () => {
  it('is optional', async () => {
    const readFile = (): Promise<string> => Promise.reject(new Error('not to be read'))
    assert.deepEqual(await loadAdmissionConfig('', { readFile, enable: [], disable: [] }), {})
  })

  it('sets the default pod security level and exemptions', async () => {
    const exemptions = { usernames: ['root'], namespaces: ['kube-system'], runtimeClasses: ['kata'] }
    const settings = await load(
      config(
        podSecurity({ defaults: { enforce: 'baseline', 'enforce-version': 'v1.30', warn: 'restricted' }, exemptions }),
      ),
    )
    assert.deepEqual(settings.podSecurity, {
      defaults: {
        enforce: { level: 'baseline', minor: 30 },
        audit: { level: 'privileged', minor: Infinity },
        warn: { level: 'restricted', minor: Infinity },
      },
      exemptions,
    })
  })

  it('sets limitedResources of quotas, in all API versions', async () => {
    const limitedResources = [{ resource: 'pods', matchContains: ['cpu'] }]
    for (const [apiVersion, kind] of [
      ['apiserver.config.k8s.io/v1', 'ResourceQuotaConfiguration'],
      ['resourcequota.admission.k8s.io/v1beta1', 'Configuration'],
    ]) {
      const configuration = { apiVersion, kind, limitedResources }
      const settings = await load(config({ name: 'ResourceQuota', configuration }))
      assert.deepEqual(settings.limitedResources, limitedResources)
    }
  })

  it('sets event rate limits as in RKE', async () => {
    const limits = [{ type: 'Server', qps: 5000, burst: 20_000 }]
    const settings = await load(config(eventLimits(limits)), ['EventRateLimit'])
    assert.deepEqual(settings.eventLimits, limits)
  })

  it('may reference files for plugin configurations', async () => {
    const { configuration } = podSecurity({ defaults: { enforce: 'restricted' } }) as { configuration: object }
    const files = { ...config({ name: 'PodSecurity', path: 'ps.yaml' }), 'etc/ps.yaml': configuration }
    assert.equal((await load(files)).podSecurity?.defaults?.enforce.level, 'restricted')
  })

  it('may contain plugins that are disabled or unknown', async () => {
    const settings = await load(
      config(eventLimits([]), { name: 'Nonsense', configuration: { a: 1 } }, { name: 'LimitRanger' }),
    )
    assert.deepEqual(settings, {})
  })

  const wrong: readonly (readonly [string, Record<string, unknown>, string])[] = [
    [
      'is missing',
      {},
      'failed to read plugin config: unable to read admission control configuration from "etc/admission.yaml" [open etc/admission.yaml: no such file or directory]',
    ],
    [
      'is another kind',
      { 'etc/admission.yaml': { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthorizationConfiguration' } },
      'failed to read plugin config: unexpected type: *apiserver.AuthorizationConfiguration',
    ],
    [
      'has unknown fields',
      config({ name: 'PodSecurity', foo: 1 }),
      'failed to read plugin config: strict decoding error: unknown field "plugins[0].foo"',
    ],
    [
      'refers to a missing file',
      config({ name: 'PodSecurity', path: 'none.yaml' }),
      "Couldn't open admission plugin configuration etc/none.yaml: open etc/none.yaml: no such file or directory",
    ],
    [
      'has a part with unknown fields',
      config(podSecurity({ default: {} })),
      'couldn\'t init admission plugin "PodSecurity": strict decoding error: unknown field "default"',
    ],
    [
      'has unknown pod security levels',
      config(podSecurity({ defaults: { enforce: 'foo', 'warn-version': 'v9' } })),
      'failed to initialize admission plugin "PodSecurity": PodSecurity configuration error: [enforce: must be one of privileged, baseline, restricted, warn-version: must be "latest" or "v1.x"]',
    ],
    [
      'has invalid exemptions',
      config(podSecurity({ exemptions: { usernames: ['', 'a', 'a'] } })),
      'failed to initialize admission plugin "PodSecurity": PodSecurity invalid: [exemptions.usernames[0]: Invalid value: "": username must not be empty, exemptions.usernames[2]: Duplicate value: "a"]',
    ],
    [
      'limits no resource',
      config({
        name: 'ResourceQuota',
        configuration: {
          apiVersion: 'apiserver.config.k8s.io/v1',
          kind: 'ResourceQuotaConfiguration',
          limitedResources: [{}],
        },
      }),
      'couldn\'t init admission plugin "ResourceQuota": limitedResources[0].resource: Required value',
    ],
    [
      'names credentials for webhooks by a relative path',
      config(webhooks('ValidatingAdmissionWebhook', { kubeConfigFile: 'x' })),
      'couldn\'t init admission plugin "ValidatingAdmissionWebhook": kubeConfigFile: Invalid value: "x": must be an absolute file path',
    ],
    [
      'names manifests while their gate is disabled',
      config(webhooks('MutatingAdmissionWebhook', { staticManifestsDir: '/x' })),
      'couldn\'t init admission plugin "MutatingAdmissionWebhook": staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled',
    ],
  ]
  for (const [what, files, message] of wrong) {
    it(`is refused when it ${what}`, async () => {
      await assert.rejects(load(files), { name: 'ProgramError', message: `failed to apply admission: ${message}` })
    })
  }

  it('must set limits for EventRateLimit', async () => {
    const start = 'failed to apply admission: couldn\'t init admission plugin "EventRateLimit": '
    await assert.rejects(load(config(), ['EventRateLimit']), {
      message: `${start}limits: Invalid value: null: must not be empty`,
    })
    const limits = [
      { type: 'Foo', qps: 1, burst: 0 },
      { type: 'User', qps: 0, burst: 1, cacheSize: -1 },
    ]
    await assert.rejects(load(config(eventLimits(limits)), ['EventRateLimit']), {
      message: `${start}[limits[0].type: Unsupported value: "Foo": supported values: "Server", "Namespace", "User", "SourceAndObject", limits[0].burst: Invalid value: 0: must be positive, limits[1].qps: Invalid value: 0: must be positive, limits[1].cacheSize: Invalid value: -1: must not be negative]`,
    })
  })

  it('sets webhook credentials for each of the two webhook plugins', async () => {
    const settings = await load(
      config(
        webhooks('MutatingAdmissionWebhook', { kubeConfigFile: '/m' }),
        webhooks('ValidatingAdmissionWebhook', { kubeConfigFile: '/v' }),
      ),
    )
    assert.deepEqual(settings, {
      mutatingWebhooks: { kubeConfigFile: '/m' },
      validatingWebhooks: { kubeConfigFile: '/v' },
    })
  })

  it('sets node selectors, inline or as the whole file', async () => {
    const podNodeSelectorPluginConfig = { clusterDefaultNodeSelector: 'a=b', ns: 'c=d' }
    for (const files of [
      config({ name: 'PodNodeSelector', configuration: { podNodeSelectorPluginConfig } }),
      { 'etc/admission.yaml': { podNodeSelectorPluginConfig } },
    ]) {
      const { nodeSelectors } = await load(files, ['PodNodeSelector'])
      assert.deepEqual(nodeSelectors, podNodeSelectorPluginConfig)
    }
  })

  it('sets cluster tolerations, and is refused with invalid ones', async () => {
    const listed = { default: [{ key: 'a', operator: 'Exists' }], whitelist: [{ key: 'b', operator: 'Exists' }] }
    const { podTolerations } = await load(config(tolerations(listed)), ['PodTolerationRestriction'])
    assert.deepEqual([podTolerations?.default, podTolerations?.whitelist], [listed.default, listed.whitelist])
    await assert.rejects(load(config(tolerations({ default: [{}] })), ['PodTolerationRestriction']), {
      message:
        'failed to apply admission: couldn\'t init admission plugin "PodTolerationRestriction": invalid config: [podtolerationrestriction.default[0].operator: Invalid value: "": operator must be Exists when `key` is empty, which means "match all values and all keys"]',
    })
  })

  it('sets times of ImagePolicyWebhook: 0 means the default, -1 none', async () => {
    const policies: readonly (readonly [given: object, expected: object])[] = [
      [{}, { allowTtlMs: 300_000, denyTtlMs: 30_000, retryBackoffMs: 500, defaultAllow: false }],
      [
        { allowTTL: 50, denyTTL: 60, retryBackoff: 700, defaultAllow: true },
        { allowTtlMs: 50_000, denyTtlMs: 60_000, retryBackoffMs: 700, defaultAllow: true },
      ],
      [
        { allowTTL: -1, denyTTL: -1, retryBackoff: -1 },
        { allowTtlMs: 0, denyTtlMs: 0, retryBackoffMs: 0, defaultAllow: false },
      ],
    ]
    for (const [given, expected] of policies) {
      const files = config(imagePolicy({ kubeConfigFile: '/k', ...given }))
      const { imagePolicyBackend } = await load(files, ['ImagePolicyWebhook'])
      assert.deepEqual(imagePolicyBackend, { kubeConfigFile: '/k', ...expected })
    }
  })

  it('is refused if ImagePolicyWebhook has no configuration or invalid times', async () => {
    const start = 'failed to apply admission: couldn\'t init admission plugin "ImagePolicyWebhook": '
    const refused: readonly (readonly [files: Record<string, unknown>, why: string])[] = [
      [config(), 'no config specified'],
      [config(imagePolicy({ allowTTL: 3600 })), 'valid value is between 1s and 30m0s, got 1h0m0s'],
      [config(imagePolicy({ retryBackoff: 400_000 })), 'valid value is between 1ns and 5m0s, got 6m40s'],
      [
        config(imagePolicy({ allowTTL: 'x' })),
        'json: cannot unmarshal string into Go struct field imagePolicyWebhookConfig.imagePolicy.allowTTL of type time.Duration',
      ],
    ]
    for (const [files, why] of refused) {
      await assert.rejects(load(files, ['ImagePolicyWebhook']), { message: start + why })
    }
  })
})
