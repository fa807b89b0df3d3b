import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PodSpec, Volume } from '#apis/core/v1.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { web } from '../pod-spec.suite.ts'
import { podWarnings } from './warnings.ts'

const warnings = (spec: Partial<PodSpec>, annotations: Record<string, string> = {}, path = fieldPath('')): string[] =>
  podWarnings(path, { metadata: { annotations }, spec: { containers: [web()], ...spec } })

const volumes = (...given: Omit<Volume, 'name'>[]): { volumes: Volume[] } => ({
  volumes: given.map((volume, at) => ({ name: `v${at}`, ...volume })),
})

const NO_SELECTOR = 'a null labelSelector results in matching no pod'

/** Compared with upstream's texts, v1.36.4. */
const cases: readonly [title: string, spec: Partial<PodSpec>, texts: readonly string[]][] = [
  ['are empty for a plain pod', {}, []],
  [
    'warn about deprecated node labels',
    {
      nodeSelector: { 'beta.kubernetes.io/os': 'linux' },
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 1,
              preference: { matchExpressions: [{ key: 'beta.kubernetes.io/arch', operator: 'In', values: ['!'] }] },
            },
          ],
        },
      },
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'failure-domain.beta.kubernetes.io/zone', whenUnsatisfiable: 'X' },
      ],
    },
    [
      'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead',
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]: ! is invalid, a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      'spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
      `spec.topologySpreadConstraints[0].labelSelector: ${NO_SELECTOR}`,
    ],
  ],
  [
    'warn about removed volume types',
    volumes({ gitRepo: { repository: 'r' } }, { storageos: {} }, { cephfs: { monitors: ['m'] } }),
    [
      'spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+',
      'spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+',
      'spec.volumes[2].cephfs: deprecated in v1.28, non-functional in v1.31+',
    ],
  ],
  [
    'warn about overlapping paths of projected files',
    volumes(
      {
        configMap: {
          name: 'c',
          items: [
            { key: 'a', path: 'x' },
            { key: 'b', path: 'x/y' },
            { key: 'c', path: 'xy' },
          ],
        },
      },
      {
        projected: {
          sources: [
            { secret: { name: 's', items: [{ key: 'a', path: 'p/' }] } },
            { serviceAccountToken: { path: 'p' } },
            {},
          ],
        },
      },
    ),
    [
      'volume "v0" (ConfigMap "c"): overlapping paths: "x/y" with "x"',
      'volume "v1" (Projected) has no sources provided',
      'volume "v1" (Projected): overlapping paths: "p" (ServiceAccountToken) with "p" (Secret "s")',
    ],
  ],
  [
    'warn about duplicate list items',
    { hostAliases: [{ ip: '1.1.1.1' }, { ip: '1.1.1.1' }], imagePullSecrets: [{ name: 'a' }, { name: 'a' }, {}] },
    [
      'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
      'spec.imagePullSecrets[1].name: duplicate name "a"',
      'spec.imagePullSecrets[2].name: invalid empty name ""',
    ],
  ],
  [
    'warn about an environment variable that a later variable of the same name hides',
    {
      containers: [
        web({
          env: [
            { name: 'A', value: '1' },
            { name: 'A', value: '2' },
            { name: 'A', value: '$(A):3' },
            { name: 'A', value: '$(A)' },
          ],
        }),
      ],
    },
    [1, 3].map(
      (at) => `spec.containers[0].env[${at}]: hides previous definition of "A", which may be dropped when using apply`,
    ),
  ],
  [
    'warn about fractional byte values',
    {
      overhead: { memory: '1m' },
      containers: [web({ resources: { requests: { memory: '100m' }, limits: { 'ephemeral-storage': '1500m' } } })],
    },
    [
      'spec.overhead[memory]: fractional byte value "1m" is invalid, must be an integer',
      'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer',
      'spec.containers[0].resources.limits[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer',
    ],
  ],
  [
    'warn about conflicting ports',
    {
      containers: [
        web({
          ports: [
            { name: 'a', containerPort: 80, protocol: 'TCP' },
            { name: 'a', containerPort: 80, protocol: 'TCP', hostIP: '1.1.1.1' },
          ],
        }),
        web({
          name: 'b',
          ports: [
            { containerPort: 80, protocol: 'TCP', hostPort: 80 },
            { containerPort: 80, protocol: 'TCP', hostPort: 80, hostIP: '1.1.1.1' },
          ],
        }),
      ],
    },
    [
      'spec.containers[0].ports[1]: hostIP set without hostPort: {Name:a HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}',
      'spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]',
      'spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]',
      'spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[1]',
      'spec.containers[1].ports[1]: overlapping port definition with spec.containers[0].ports[0]',
      'spec.containers[1].ports[1]: overlapping port definition with spec.containers[0].ports[1]',
      'spec.containers[1].ports[1]: dangerously ambiguous port definition with spec.containers[1].ports[0]',
      'spec.containers[0].ports[1]: duplicate port name "a" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]',
    ],
  ],
  [
    'warn about selectors that match nothing, and unusual numbers',
    {
      terminationGracePeriodSeconds: -1,
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: 'z' } }],
        },
      },
      dnsConfig: { nameservers: ['::0001'] },
      hostAliases: [{ ip: '01.2.3.4' }],
    },
    [
      'spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1',
      `spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: ${NO_SELECTOR}`,
      'spec.dnsConfig.nameservers[0]: IPv6 address "::0001" should be in RFC 5952 canonical format ("::1")',
      'spec.hostAliases[0].ip: non-standard IP address "01.2.3.4" is invalid: use "1.2.3.4"',
    ],
  ],
]

describe('warnings about pods', () => {
  for (const [title, spec, texts] of cases) it(title, () => assert.deepEqual(warnings(spec), texts))

  it('include annotations that became fields', () => {
    const annotations = {
      'scheduler.alpha.kubernetes.io/critical-pod': '',
      'seccomp.security.alpha.kubernetes.io/pod': 'unconfined',
      'container.seccomp.security.alpha.kubernetes.io/web': 'unconfined',
      'container.apparmor.security.beta.kubernetes.io/web': 'unconfined',
    }
    const at = 'spec.template.metadata.annotations'
    const texts = [
      `${at}[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead`,
      `${at}[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead`,
      `${at}[container.seccomp.security.alpha.kubernetes.io/web]: non-functional in v1.27+; use the "seccompProfile" field instead`,
      `${at}[container.apparmor.security.beta.kubernetes.io/web]: deprecated since v1.30; use the "appArmorProfile" field instead`,
    ]
    assert.deepEqual(warnings({}, annotations, fieldPath('spec.template')), texts)
    // For a pod, the code that converts the annotation warns.
    assert.equal(warnings({}, annotations).length, texts.length - 1)
    const same = { securityContext: { appArmorProfile: { type: 'Unconfined' } } }
    assert.equal(warnings(same, annotations, fieldPath('spec.template')).length, texts.length - 1)
  })

  it('are computed from a bounded number of pairs', () => {
    const ports = Array.from({ length: 20_000 }, () => ({ containerPort: 1, protocol: 'TCP' }))
    const items = Array.from({ length: 20_000 }, (_, at) => ({ key: 'k', path: `p${at}` }))
    const texts = warnings({ containers: [web({ ports })], ...volumes({ configMap: { name: 'c', items } }) })
    assert.ok(texts.length < 20_000 * 65)
  })
})
