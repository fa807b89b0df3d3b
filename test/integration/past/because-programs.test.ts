/** Tests that writes of kube-controller-manager in a process of its own name the same causes as in one process. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import type { Change, ChangeList } from '#control-plane/past/changes.ts'

import { type ComponentPrograms, componentPrograms, until } from '../component-programs.ts'
import { chainTo } from './causes.ts'

const IN_DEFAULT = '/namespaces/default'

describe('causes of writes of another process', () => {
  let programs: ComponentPrograms
  before(async () => {
    programs = await componentPrograms('kube-controller-manager')
    await programs.start('--use-service-account-credentials', '--leader-elect=false')
  })
  after(() => programs?.[Symbol.asyncDispose]())

  async function changesOf(path: string): Promise<readonly Change[]> {
    return ((await programs.get(`/past/rv:0..${path}`)) as ChangeList).items
  }

  async function create(path: string, object: object): Promise<{ metadata: { uid: string; resourceVersion: string } }> {
    const { status, text } = await programs.plane.request('POST', path, object)
    assert.equal(status, 201, text)
    return JSON.parse(text) as never
  }

  it('lead from a pod to the user who created the Deployment', async () => {
    const labels = { app: 'web' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1' }] } }
    const { metadata } = await create(`/apis/apps/v1${IN_DEFAULT}/deployments`, {
      metadata: { name: 'web' },
      spec: { replicas: 1, selector: { matchLabels: labels }, template },
    })
    const pod = await until('the pod', async () => (await changesOf(`/api/v1${IN_DEFAULT}/pods`))[0])
    const cause = `pods/default/${pod.object.metadata.name}@${pod.resourceVersion}`
    const isCreation = ({ change }: { change: Change }): boolean => change.resourceVersion === metadata.resourceVersion
    const chain = await chainTo(programs.get, cause, isCreation)
    assert.deepEqual(
      chain.map(({ who, what }) => `${who} ${what}`.replace(/web-.*/, 'web-…')),
      [
        'admin ADDED deployments/web',
        'deployment-controller ADDED replicasets/web-…',
        'replicaset-controller ADDED pods/web-…',
      ],
    )
  })

  it('are the deleted owners of garbage', async () => {
    const maps = `/api/v1${IN_DEFAULT}/configmaps`
    const isDeletion = ({ type }: Change): boolean => type === 'DELETED'
    const none = { apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: 'none' }
    await create(maps, { metadata: { name: 'orphan', ownerReferences: [none] } })
    await until('the collector', async () => (await changesOf(`${maps}/orphan`)).find(isDeletion))
    const { metadata } = await create(maps, { metadata: { name: 'owner' } })
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: metadata.uid }]
    await create(maps, { metadata: { name: 'owned', ownerReferences } })
    await programs.plane.request('DELETE', `${maps}/owner`)
    const owner = (await changesOf(`${maps}/owner`)).find(isDeletion)
    const owned = await until('the deletion', async () => (await changesOf(`${maps}/owned`)).find(isDeletion))
    assert.deepEqual(owned.by?.because, [`configmaps/default/owner@${owner?.resourceVersion}`])
  })
})
