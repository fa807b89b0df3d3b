import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { DaemonSet, Deployment, StatefulSet } from '#apis/apps/v1.ts'

import { daemonSetStatus, deploymentStatus, statefulSetStatus } from './status.ts'

const deployment = (status: object, metadata: object = {}): Deployment =>
  ({ metadata: { name: 'web', generation: 2, ...metadata }, spec: { replicas: 3 }, status }) as unknown as Deployment

describe('kubectl rollout status', () => {
  const rows: readonly [what: string, status: object, text: string, isDone: boolean][] = [
    [
      'that the controller has not yet observed',
      { observedGeneration: 1 },
      'Waiting for deployment spec update to be observed...\n',
      false,
    ],
    [
      'that is being updated',
      { observedGeneration: 2, updatedReplicas: 1 },
      'Waiting for deployment "web" rollout to finish: 1 out of 3 new replicas have been updated...\n',
      false,
    ],
    [
      'that still has old pods',
      { observedGeneration: 2, updatedReplicas: 3, replicas: 5 },
      'Waiting for deployment "web" rollout to finish: 2 old replicas are pending termination...\n',
      false,
    ],
    [
      'whose pods are not yet available',
      { observedGeneration: 2, updatedReplicas: 3, replicas: 3, availableReplicas: 1 },
      'Waiting for deployment "web" rollout to finish: 1 of 3 updated replicas are available...\n',
      false,
    ],
    [
      'that is complete',
      { observedGeneration: 2, updatedReplicas: 3, replicas: 3, availableReplicas: 3 },
      'deployment "web" successfully rolled out\n',
      true,
    ],
  ]
  for (const [what, status, text, isDone] of rows) {
    it(`prints the progress of a deployment ${what}`, () => {
      assert.deepEqual(deploymentStatus(deployment(status), 0), { text, isDone })
    })
  }

  it('fails after the progress deadline, or if another revision is active', () => {
    const late = { observedGeneration: 2, conditions: [{ type: 'Progressing', reason: 'ProgressDeadlineExceeded' }] }
    assert.throws(() => deploymentStatus(deployment(late), 0), /deployment "web" exceeded its progress deadline/)
    const annotations = { 'deployment.kubernetes.io/revision': '4' }
    assert.throws(
      () => deploymentStatus(deployment({}, { annotations }), 3),
      /desired revision \(3\) is different from the running revision \(4\)/,
    )
  })

  it('supports StatefulSets and DaemonSets only with strategy RollingUpdate', () => {
    const onDelete = { metadata: {}, spec: { updateStrategy: { type: 'OnDelete' } }, status: {} }
    for (const status of [daemonSetStatus, statefulSetStatus] as const) {
      assert.throws(() => status(onDelete as unknown as DaemonSet & StatefulSet), /only available for RollingUpdate/)
    }
  })

  it('counts only pods above the partition of a StatefulSet', () => {
    const set = (updatedReplicas: number): StatefulSet =>
      ({
        metadata: { generation: 1 },
        spec: { replicas: 3, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } },
        status: { observedGeneration: 1, readyReplicas: 3, updatedReplicas },
      }) as unknown as StatefulSet
    assert.equal(
      statefulSetStatus(set(1)).text,
      'Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...\n',
    )
    assert.ok(statefulSetStatus(set(2)).isDone)
  })
})
