/** Tests which actions an object has, and the requests that they send. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ControllerRevision, ReplicaSet } from '#apis/apps/v1.ts'
import type { CronJob } from '#apis/batch/v1.ts'
import type { Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { childKinds, countByKind, type Dependant } from '../related/dependants.ts'
import type { Target } from './action.ts'
import { actionsFor } from './actions.ts'
import { evict, planDrain } from './drain-plan.ts'
import {
  controllerRevisions,
  deploymentRevisions,
  instantiateJob,
  parseLabels,
  remove,
  restart,
  scale,
  setLabels,
} from './plans.ts'

const NOW = { nowMs: Date.parse('2026-01-02T03:04:05.678Z'), suffix: 'abcde' }
const deployments = { group: 'apps', version: 'v1', plural: 'deployments' }

function target(object: object = {}): Target {
  const metadata = { name: 'web', namespace: 'shop', uid: 'u1', labels: { a: '1', b: '2' }, annotations: {} }
  return { kind: deployments, object: { apiVersion: 'apps/v1', kind: 'Deployment', metadata, ...object } }
}

describe('actionsFor()', () => {
  const cases: readonly (readonly [object: object, names: string])[] = [
    [{ apiVersion: 'apps/v1', kind: 'Deployment', spec: {} }, 'scale restart undo pause labels delete'],
    [{ apiVersion: 'apps/v1', kind: 'Deployment', spec: { paused: true } }, 'scale resume-rollout labels delete'],
    [{ apiVersion: 'v1', kind: 'Node', spec: {} }, 'cordon drain debug-node labels delete'],
    [{ apiVersion: 'v1', kind: 'Node', spec: { unschedulable: true } }, 'uncordon drain debug-node labels delete'],
    [{ apiVersion: 'batch/v1', kind: 'CronJob', spec: {} }, 'run-now suspend labels delete'],
    [{ apiVersion: 'batch/v1', kind: 'Job', spec: { suspend: true } }, 'resume labels delete'],
    [{ apiVersion: 'example.com/v1', kind: 'Deployment' }, 'labels delete'],
    [{ apiVersion: 'v1', kind: 'Node', metadata: { deletionTimestamp: 'x' } }, 'labels delete'],
  ]
  for (const [object, names] of cases) {
    it(`offers ${names} for ${JSON.stringify(object).slice(0, 80)}`, () => {
      const actions = actionsFor({ metadata: {}, ...object })
      assert.equal(actions.map(({ name }) => name).join(' '), names)
    })
  }
})

describe('requests of actions', () => {
  it('scale through the subresource', () => {
    const { path, body } = scale(target(), 3)
    assert.equal(path, '/apis/apps/v1/namespaces/shop/deployments/web/scale?fieldManager=hyperkube-console')
    assert.deepEqual(body, { spec: { replicas: 3 } })
  })

  it('restart by an annotation of the template, with seconds', () => {
    assert.match(
      JSON.stringify(restart(target(), NOW).body),
      /"kubectl.kubernetes.io\/restartedAt":"2026-01-02T03:04:05Z"/,
    )
  })

  it('change and remove labels, and nothing else', () => {
    assert.deepEqual(setLabels(target(), { a: '1', c: '3' }).body, { metadata: { labels: { c: '3', b: null } } })
    assert.deepEqual(parseLabels('a=1\n\n b = x=y \n'), { a: '1', b: 'x=y' })
    assert.throws(() => parseLabels('novalue'), /"novalue" is not key=value/)
  })

  it('delete only the object with this uid', () => {
    const { path, body } = remove(target(), 'Foreground')
    assert.equal(path, '/apis/apps/v1/namespaces/shop/deployments/web')
    assert.deepEqual(body, {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
      preconditions: { uid: 'u1' },
    })
  })

  it('run a CronJob now, with a name that fits', () => {
    const cronJob = {
      metadata: { name: 'n'.repeat(60), namespace: 'shop', uid: 'u' },
      spec: { jobTemplate: { metadata: { labels: { l: '1' } }, spec: { x: 1 } } },
    }
    const { body } = instantiateJob(cronJob as unknown as CronJob, NOW) as { body: KubeObject & { spec: object } }
    assert.equal(body.metadata.name?.length, 63)
    assert.match(body.metadata.name ?? '', /-manual-abcde$/)
    assert.deepEqual(body.metadata.annotations, { 'cronjob.kubernetes.io/instantiate': 'manual' })
    assert.deepEqual(body.spec, { x: 1 })
  })
})

describe('revisions', () => {
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u1' }]
  const REVISION = 'deployment.kubernetes.io/revision'

  it('of a Deployment are its ReplicaSets, without the label of the hash', () => {
    const replicaSet = (revision: string, image: string, uid = 'u1'): ReplicaSet =>
      ({
        metadata: {
          annotations: { [REVISION]: revision, note: image },
          ownerReferences: [{ ...ownerReferences[0], uid }],
        },
        spec: {
          template: {
            metadata: { labels: { app: 'web', 'pod-template-hash': 'x' } },
            spec: { containers: [{ name: 'a', image }] },
          },
        },
      }) as unknown as ReplicaSet
    const metadata = { name: 'web', namespace: 'shop', uid: 'u1', annotations: { [REVISION]: '2', old: 'x' } }
    const revisions = deploymentRevisions(target({ metadata }), [
      replicaSet('1', 'i1'),
      replicaSet('2', 'i2'),
      replicaSet('9', 'x', 'other'),
    ])
    assert.deepEqual(
      revisions.map(({ number, summary, isCurrent }) => [number, summary, isCurrent]),
      [
        [2, 'i2', true],
        [1, 'i1', false],
      ],
    )
    assert.deepEqual(revisions[1]?.request.body, [
      {
        op: 'replace',
        path: '/spec/template',
        value: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'a', image: 'i1' }] } },
      },
      { op: 'replace', path: '/metadata/annotations', value: { [REVISION]: '2', note: 'i1' } },
    ])
  })

  it('of a StatefulSet are patches', () => {
    const revision = (number: number): ControllerRevision => ({
      revision: number,
      metadata: { name: `web-${number}`, ownerReferences },
      data: { spec: number },
    })
    const [newest, older] = controllerRevisions(target(), [revision(1), revision(2)])
    assert.deepEqual([newest?.isCurrent, older?.isCurrent, older?.request.body], [true, false, { spec: 1 }])
  })
})

describe('planDrain()', () => {
  const pod = (name: string, more: object): Pod =>
    ({ metadata: { name, namespace: 'a', uid: name }, spec: {}, status: {}, ...more }) as unknown as Pod
  const owned = (name: string, kind: string): Pod =>
    pod(name, { metadata: { name, namespace: 'a', uid: name, ownerReferences: [{ kind, controller: true }] } })

  it('keeps pods of DaemonSets and of files, and names what is lost', () => {
    const plan = planDrain([
      owned('web', 'ReplicaSet'),
      owned('agent', 'DaemonSet'),
      pod('static', { metadata: { name: 'static', annotations: { 'kubernetes.io/config.mirror': 'x' } } }),
      pod('lone', { spec: { volumes: [{ name: 'v', emptyDir: {} }] } }),
      pod('over', { status: { phase: 'Succeeded' } }),
    ])
    const names = (pods: readonly Pod[]): string => pods.map(({ metadata }) => metadata.name).join()
    assert.equal(names(plan.evicted), 'web,lone,over')
    assert.equal(names(plan.kept.map(({ pod: one }) => one)), 'agent,static')
    assert.equal(names(plan.unmanaged), 'lone')
    assert.equal(names(plan.losing), 'lone')
  })

  it('evicts exactly the pod that was seen', () => {
    const { path, body } = evict(owned('web', 'ReplicaSet'))
    assert.equal(path, '/api/v1/namespaces/a/pods/web/eviction')
    assert.deepEqual((body as { deleteOptions: object }).deleteOptions, { preconditions: { uid: 'web' } })
  })
})

describe('dependants', () => {
  it('are looked for in the kinds that controllers make', () => {
    const plurals = (apiVersion: string, kind: string): string =>
      childKinds({ apiVersion, kind, metadata: {} })
        .map(({ plural }) => plural)
        .join()
    assert.equal(plurals('apps/v1', 'Deployment'), 'replicasets')
    assert.equal(plurals('v1', 'ConfigMap'), '')
    assert.match(plurals('example.com/v1', 'Database'), /statefulsets.*secrets/)
  })

  it('are counted by kind through all levels', () => {
    const node = (kind: string, children: readonly Dependant[] = []): Dependant => ({
      object: { kind, metadata: {} },
      children,
    })
    assert.deepEqual(countByKind([node('ReplicaSet', [node('Pod'), node('Pod')]), node('ReplicaSet')]), [
      { kind: 'ReplicaSet', count: 2 },
      { kind: 'Pod', count: 2 },
    ])
  })
})
