/** Tests the summaries of objects, their states and the values they show. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { podsOf } from '../objects/pods-of.ts'
import { selectorQuery, selects } from '../objects/selector.ts'
import { stateOf } from '../objects/state-of.ts'
import { boundTable } from './access.ts'
import { probeText } from './containers.ts'
import { dataEntries, shownAnnotations } from './data.ts'
import { resourceTable } from './node.ts'
import { tolerationText } from './pod.ts'
import type { Section } from './section.ts'
import { summaryOf } from './summary.ts'
import { rollout } from './workload.ts'

/** `Title: Label=value; ...`, tables with rows in brackets. */
function textOf(sections: readonly Section[] = []): string {
  return sections.map((section) => `${section.title}: ${contentOf(section)}`).join('\n')
}

function contentOf(section: Section): string {
  if (section.type === 'table') return section.rows.map((row) => `[${row.map(cellText).join(', ')}]`).join(' ')
  return section.fields.map(([label, value]) => `${label}=${cellText(value)}`).join('; ')
}

function cellText(cell: unknown): string {
  if (Array.isArray(cell)) return cell.map(cellText).join(' + ')
  if (typeof cell === 'object' && cell !== null) return (cell as { text: string }).text
  return cell === undefined ? '-' : JSON.stringify(cell).replaceAll('"', '')
}

const metadata = { name: 'web', namespace: 'shop' }

/** Objects and a part of their summary. */
const SUMMARIES: readonly (readonly [object: object, pattern: RegExp])[] = [
  [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: {
        nodeName: 'node-0',
        containers: [
          {
            name: 'app',
            image: 'shop:1',
            env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'pass', key: 'word' } } }],
            resources: { limits: { memory: '1Gi' } },
          },
        ],
        volumes: [{ name: 'c', configMap: { name: 'conf' } }],
      },
      status: {
        containerStatuses: [
          {
            name: 'app',
            ready: true,
            restartCount: 2,
            state: { running: {} },
            lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } },
          },
        ],
      },
    },
    /Node=node-0[^]*Container app: State=Running; Last exit=OOMKilled, exit code 137; Restarts=2; Image=shop:1; Limits=memory=1Gi; Environment=A= key word of Secret pass[^]*\[c, ConfigMap, conf\]/,
  ],
  [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }] },
    },
    /Selector=app=web\nPorts: \[, 80, TCP, http, -\]/,
  ],
  [
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata,
      spec: {
        rules: [
          {
            host: 'a.example',
            http: {
              paths: [{ path: '/x', pathType: 'Prefix', backend: { service: { name: 's', port: { number: 80 } } } }],
            },
          },
        ],
      },
    },
    /\[a.example, \/x, Prefix, s:80\]/,
  ],
  [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata,
      rules: [{ verbs: ['get'], resources: ['pods'], apiGroups: [''] }],
    },
    /Rules: \[get, pods, core, \]/,
  ],
  [
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata,
      spec: { schedule: '0 3 * * *', suspend: true, jobTemplate: { spec: { template: {} } } },
      status: {},
    },
    /Schedule=0 3 \* \* \*; Suspended=Yes/,
  ],
]

describe('summaryOf()', () => {
  for (const [object, pattern] of SUMMARIES) {
    it(`shows ${(object as KubeObject).kind}`, () => assert.match(textOf(summaryOf(object as KubeObject)), pattern))
  }

  it('leaves kinds that it does not know, and objects without required fields, to the tree of fields', () => {
    assert.equal(summaryOf({ apiVersion: 'example.com/v1', kind: 'Widget', metadata }), undefined)
    assert.equal(summaryOf({ apiVersion: 'v1', kind: 'Pod', metadata }), undefined)
  })
})

describe('stateOf()', () => {
  const states: readonly (readonly [object: object, text: string | undefined])[] = [
    [{ kind: 'Deployment', spec: { replicas: 3 }, status: { readyReplicas: 2 } }, '2/3 ready'],
    [
      { kind: 'Deployment', spec: { replicas: 3 }, status: { readyReplicas: 3, replicas: 4, updatedReplicas: 1 } },
      '1/3 updated',
    ],
    [
      {
        kind: 'StatefulSet',
        spec: { replicas: 2 },
        status: { readyReplicas: 2, replicas: 2, updatedReplicas: 1, currentRevision: 'a', updateRevision: 'b' },
      },
      '1/2 updated',
    ],
    [
      {
        kind: 'DaemonSet',
        spec: { updateStrategy: { type: 'OnDelete' } },
        status: { desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 2, updatedNumberScheduled: 1 },
      },
      '2/2 ready',
    ],
    [
      { kind: 'Node', status: { conditions: [{ type: 'Ready', status: 'True' }] }, spec: { unschedulable: true } },
      'Ready,SchedulingDisabled',
    ],
    [{ kind: 'Job', spec: {}, status: { conditions: [{ type: 'Failed', status: 'True' }] } }, 'Failed'],
    [{ kind: 'PersistentVolumeClaim', status: { phase: 'Bound' } }, 'Bound'],
    [{ kind: 'Widget', status: { conditions: [{ type: 'Ready', status: 'False', reason: 'NoPaint' }] } }, 'NoPaint'],
    [{ kind: 'Widget', metadata: { deletionTimestamp: 'x' } }, 'Terminating'],
    [{ kind: 'ConfigMap' }, undefined],
    [
      {
        kind: 'Pod',
        status: { phase: 'Running', containerStatuses: [{ ready: false, state: { terminated: { exitCode: 3 } } }] },
      },
      'ExitCode:3',
    ],
    [
      {
        kind: 'Pod',
        spec: { initContainers: [{ name: 'a' }, { name: 'b' }] },
        status: {
          phase: 'Pending',
          initContainerStatuses: [
            { name: 'a', state: { terminated: { exitCode: 0 } } },
            { name: 'b', state: { running: {} } },
          ],
        },
      },
      'Init:1/2',
    ],
  ]
  for (const [object, text] of states) {
    it(`is ${text} for ${JSON.stringify(object).slice(0, 60)}`, () =>
      assert.equal(stateOf({ metadata: {}, ...object })?.text, text))
  }
})

describe('parts of summaries', () => {
  it('say how far a rollout is', () => {
    const cases = [
      [{ observedGeneration: 1 }, 3, 2, /Waiting/],
      [{ observedGeneration: 2, updatedReplicas: 1 }, 3, 2, /1 of 3 replicas are updated/],
      [{ observedGeneration: 2, replicas: 4, updatedReplicas: 3 }, 3, 2, /1 old replicas/],
      [{ observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3 }, 3, 2, /Complete/],
    ] as const
    for (const [status, wanted, generation, pattern] of cases)
      assert.match(rollout(status, wanted, generation).text, pattern)
  })

  it('describe probes and tolerations', () => {
    assert.match(
      probeText({ httpGet: { port: 8080, path: '/ok' } }) ?? '',
      /^HTTP GET :8080\/ok every 10s, timeout 1s, fails after 3$/,
    )
    assert.equal(tolerationText({ operator: 'Exists' }), 'everything')
    assert.equal(
      tolerationText({ key: 'a', value: 'b', effect: 'NoExecute', tolerationSeconds: 30 }),
      'a=b:NoExecute for 30s',
    )
  })

  it('sum the requests of the pods on a node', () => {
    const node = {
      metadata: {},
      status: { capacity: { cpu: '4', pods: '110' }, allocatable: { cpu: '4', pods: '110' } },
    }
    const pod = (cpu: string): Pod => ({
      metadata: {},
      spec: { containers: [{ name: 'a', resources: { requests: { cpu } } }] },
      status: {},
    })
    assert.equal(
      textOf(resourceTable(node as never, [pod('500m'), pod('1500m')])),
      'Resources: [cpu, 4, 4, 2 (50 %)] [pods, 110, 110, 2 (2 %)]',
    )
  })

  it('name who has a role', () => {
    const binding = {
      kind: 'RoleBinding',
      metadata: { name: 'b', namespace: 'shop' },
      roleRef: { kind: 'Role', name: 'reader', apiGroup: '' },
      subjects: [{ kind: 'User', name: 'ada' }],
    }
    assert.equal(
      textOf(boundTable({ kind: 'Role', name: 'reader' }, [binding as never])),
      'Bound to: [User, ada, shop, RoleBinding b]',
    )
  })

  it('hide the copy of the values that kubectl apply keeps in an annotation of a Secret', () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'geheim', a: 'b' }
    const shown = shownAnnotations({ kind: 'Secret', metadata: { annotations } })
    assert.doesNotMatch(JSON.stringify(shown), /geheim/)
    assert.equal(shown['a'], 'b')
    assert.deepEqual(shownAnnotations({ kind: 'ConfigMap', metadata: { annotations } }), annotations)
  })

  it('hide values of Secrets until they are decoded', () => {
    const [entry, bytes] = dataEntries({ kind: 'Secret', metadata, data: { a: 'Z2VoZWlt', b: '/w==' } } as KubeObject)
    assert.deepEqual([entry?.isSecret, entry?.bytes, entry?.text()], [true, 6, 'geheim'])
    assert.deepEqual([bytes?.bytes, bytes?.text()], [1, undefined])
  })
})

describe('selectors', () => {
  it('are written for a query and applied to labels', () => {
    const selector = {
      matchLabels: { app: 'web' },
      matchExpressions: [{ key: 'tier', operator: 'NotIn' as const, values: ['old'] }],
    }
    assert.equal(selectorQuery(selector), 'app=web,tier notin (old)')
    assert.equal(selects(selector, { app: 'web', tier: 'new' }), true)
    assert.equal(selects(selector, { app: 'web', tier: 'old' }), false)
    assert.equal(selects({}, { app: 'web' }), false)
  })

  it('choose the pods of an object', () => {
    const service = { kind: 'Service', metadata, spec: { selector: { app: 'web' } } } as KubeObject
    assert.deepEqual(podsOf(service), { namespace: 'shop', labels: 'app=web', fields: '' })
    assert.equal(podsOf({ kind: 'Service', metadata, spec: {} } as KubeObject), undefined)
    assert.equal(podsOf({ kind: 'Node', metadata: { name: 'n' } })?.fields, 'spec.nodeName=n')
  })
})
