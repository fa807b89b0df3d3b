/**
 * Tests in a real browser that an imported cluster has the same objects after its removal as before its import. The
 * definitions of an authorized endpoint, which this cluster does not have, would stay: see removeAuthTokens.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { ClusterRoleBindings, ClusterRoles } from '#apis/rbac/v1.ts'
import { agentManifest } from '#management/clusters/agent-manifest.ts'
import { Clusters } from '#management/kinds/cluster.ts'
import type { KubeObject } from '#meta/object.ts'
import { startCluster, type TestCluster } from '#testing/public-api.ts'

import { eventually } from '../management/bed.ts'
import { connected, importCluster } from '../management/downstream.ts'
import { whyNoBrowser } from './browser-bed.ts'
import { type ServerBed, startServerBed } from './server-bed.ts'

/** They change by themselves. */
const RESTLESS: ReadonlySet<string> = new Set(['events', 'leases', 'nodes'])

interface ResourceList {
  readonly resources: readonly { readonly name: string; readonly verbs: readonly string[] }[]
}

describe('the removal of an imported cluster', { skip: whyNoBrowser }, () => {
  const closing = new AsyncDisposableStack()
  let bed: ServerBed
  let cluster: TestCluster
  before(async () => {
    cluster = closing.use(await startCluster({ nodes: 1 }))
    bed = closing.use(await startServerBed())
  })
  after(() => closing.disposeAsync())

  async function get<T>(path: string): Promise<T> {
    const answer = await cluster.client.ask({ method: 'GET', path })
    return JSON.parse((await answer.bytes(64 << 20)).toString()) as T
  }

  /** All objects of the cluster as text, by kind, namespace and name. */
  async function everything(): Promise<ReadonlyMap<string, string>> {
    const { groups } = await get<{ groups: readonly { preferredVersion: { groupVersion: string } }[] }>('/apis')
    const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)]
    const found = new Map<string, string>()
    for (const root of roots) {
      const { resources } = await get<ResourceList>(root)
      for (const { name, verbs } of resources) {
        if (!verbs.includes('list') || name.includes('/') || RESTLESS.has(name)) continue
        const { items } = await get<{ items: readonly KubeObject[] }>(`${root}/${name}`)
        for (const object of items) found.set(keyOf(name, object), textOf(object))
      }
    }
    return found
  }

  it('leaves every object as it was', async () => {
    const { page, server } = bed
    const objects = await settled()
    const { id, token } = await importCluster(server, 'prod')
    for (const object of agentManifest({
      serverUrl: server.url,
      ca: server.ca,
      registrationToken: token,
      image: 'example.com/agent:1',
    }))
      await create(object)
    server.runAgent(cluster.kubeconfig, token)
    await connected(server, id)
    const { name } = await server.createUser('jane')
    const { administrator } = server
    for (const role of ['cluster-member', 'cluster-owner']) {
      const added = await server.request('POST', `/v3/clusters/${id}/members`, {
        token: administrator,
        body: { role, user: name },
      })
      assert.equal(added.status, 201, added.text)
    }
    await eventually('the rights are in the cluster', () => {
      const conditions = server.running.objects.get(Clusters, id)?.status?.conditions ?? []
      return conditions.some((one) => one.type === 'RolesApplied' && one.status === 'True')
    })
    const between = await everything()
    const added = [...between.keys()].filter((key) => !objects.has(key))
    assert.ok(added.length > 10, added.join())
    await bed.open(`/clusters/${id}`)
    await page.getByRole('button', { name: 'Remove …' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('heading', { name: 'Clusters', exact: true }).waitFor()
    await page.getByRole('article', { name: 'prod' }).waitFor({ state: 'detached' })
    let differences: readonly string[] = []
    const isSame = async (): Promise<boolean> => {
      differences = differencesOf(objects, await everything())
      return differences.length === 0
    }
    await eventually('the cluster is as before', isSame).catch(() => undefined)
    assert.deepEqual(differences, [])
    assert.deepEqual(bed.troubles, [])
  })

  /** The objects of the cluster when its controllers have made theirs. */
  async function settled(): Promise<ReadonlyMap<string, string>> {
    let last = await everything()
    await eventually('the cluster changes no more', async () => {
      const now = await everything()
      const isQuiet = differencesOf(last, now).length === 0
      last = now
      return isQuiet
    })
    return last
  }

  async function create(object: KubeObject): Promise<void> {
    const { kind = '', metadata } = object
    const plurals: Readonly<Record<string, string>> = {
      ClusterRole: ClusterRoles.plural,
      ClusterRoleBinding: ClusterRoleBindings.plural,
    }
    const plural = plurals[kind] ?? `${kind.toLowerCase()}s`
    const root = object.apiVersion === 'v1' ? '/api/v1' : `/apis/${object.apiVersion}`
    const where = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`
    await cluster.client.ask({ method: 'POST', path: `${root}${where}/${plural}`, body: object })
  }
})

function keyOf(plural: string, { metadata }: KubeObject): string {
  return `${plural} ${metadata.namespace ?? ''}/${metadata.name}`
}

function textOf(object: KubeObject): string {
  const { resourceVersion: _version, managedFields: _fields, ...metadata } = object.metadata
  return JSON.stringify({ ...object, metadata })
}

function differencesOf(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((key) => {
    if (!after.has(key)) return [`${key} is gone`]
    if (!before.has(key)) return [`${key} is left`]
    return before.get(key) === after.get(key) ? [] : [`${key} has changed: ${after.get(key)}`]
  })
}
