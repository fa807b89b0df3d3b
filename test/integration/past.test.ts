/** Tests the paths below `/past/<moment>`: the API of the cluster as it was. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type CustomResourceDefinition, CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { Deployments } from '#apis/apps/v1.ts'
import { type ConfigMap, ConfigMaps, Namespaces, Pods, Secrets } from '#apis/core/v1.ts'
import { ClusterRoleBindings, ClusterRoles, RoleBindings, Roles } from '#apis/rbac/v1.ts'
import type { ApiClient, Draft } from '#client/api-client.ts'
import type { ChangeList } from '#control-plane/past/changes.ts'
import { StatusError } from '#meta/status.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

const namespace = 'default'

/** A cluster with the ConfigMap `early` of 0:00, and `late` of 0:01, when `early` changed; it is 0:02. */
async function twoMinutes(): Promise<TestCluster> {
  const cluster = await startCluster({ clock: 'virtual' })
  const { client, clock } = cluster
  await client.create(ConfigMaps, { metadata: { namespace, name: 'early' }, data: { value: 'old' } })
  await clock.advance('1m')
  await client.create(ConfigMaps, { metadata: { namespace, name: 'late' } })
  await client.apply(ConfigMaps, { metadata: { namespace, name: 'early' }, data: { value: 'new' } }, FORCED)
  await clock.advance('1m')
  return cluster
}

const MAX_BYTES = 1 << 20
const NOTHING = ['', '', ''] as const
const FORCED = { fieldManager: 'test', force: true }

async function namesOf(client: ApiClient): Promise<string[]> {
  const { items } = await client.list(ConfigMaps, { namespace })
  return items.map(({ metadata: { name = '' } }) => name).filter((name) => name !== 'kube-root-ca.crt')
}

async function textOf(client: ApiClient, path: string, accept?: string): Promise<string> {
  return (await client.ask({ method: 'GET', path, accept })).text(MAX_BYTES)
}

/** The code of a refused request. */
async function codeOf(request: Promise<unknown>): Promise<number | undefined> {
  try {
    await request
    return undefined
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error))
    return error.status.code
  }
}

describe('the past of a cluster', () => {
  it('has the objects of a time, with the age of that time', async () => {
    await using cluster = await twoMinutes()
    const then = cluster.client.at('-100s')
    assert.deepEqual(await namesOf(then), ['early'])
    assert.equal((await then.get(ConfigMaps, { namespace, name: 'early' })).data?.['value'], 'old')
    assert.equal(await codeOf(then.get(ConfigMaps, { namespace, name: 'late' })), 404)
    assert.deepEqual(await namesOf(cluster.client), ['early', 'late'])
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const path = `/api/v1/namespaces/${namespace}/configmaps/early`
    const { rows } = JSON.parse(await textOf(then, path, accept)) as { rows: { cells: unknown[] }[] }
    assert.match(String(rows[0]?.cells[2]), /^(19|20|21)s$/)
  })

  it('is found by time and by resourceVersion', async () => {
    await using cluster = await twoMinutes()
    const { metadata } = await cluster.client.get(ConfigMaps, { namespace, name: 'late' })
    const before = `rv:${Number(metadata.resourceVersion) - 1}`
    for (const moment of ['-100s', before, '2026-01-01T00:00:30Z', '2026-01-01T01:00:30+01:00']) {
      assert.deepEqual(await namesOf(cluster.client.at(moment)), ['early'], moment)
    }
  })

  it('refuses moments that are unknown, with the reason', async () => {
    await using cluster = await twoMinutes()
    const rows = [
      ['yesterday', 400, /"yesterday" is not a moment; write a time ago as -2h/],
      ['2030-01-01T00:00Z', 400, /is in the future/],
      ['-10s@0x', 400, /the speed of "-10s@0x" must be greater than 0/],
      [
        '-3h',
        410,
        /The history of the cluster does not reach back to 2025-12-31T21:0\S+: it begins at 2026-01-01T00:0\S+Z, rv:\d+$/,
      ],
      ['rv:99999', 410, /99999/],
    ] as const
    for (const [moment, code, message] of rows) {
      await assert.rejects(namesOf(cluster.client.at(moment)), (error) => {
        assert.ok(error instanceof StatusError)
        assert.equal(error.status.code, code, moment)
        assert.match(error.message, message)
        return true
      })
    }
  })

  it('cannot be changed', async () => {
    await using cluster = await twoMinutes()
    const then = cluster.client.at('-100s')
    const early = { namespace, name: 'early' }
    const writes = [
      then.create(ConfigMaps, { metadata: { namespace, name: 'new' } }),
      then.apply(ConfigMaps, { metadata: early }, FORCED),
      then.patch(ConfigMaps, early, { type: 'merge', value: { data: {} } }),
      then.delete(ConfigMaps, early),
    ]
    assert.deepEqual(await Promise.all(writes.map(codeOf)), [405, 405, 405, 405])
    assert.deepEqual(await namesOf(then), ['early'])
    assert.deepEqual(await namesOf(cluster.client), ['early', 'late'])
  })

  it('has the kinds of that time', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client, clock } = cluster
    await client.create(CustomResourceDefinitions, WIDGETS)
    await clock.advance('30s')
    const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'one' }, spec: { size: 3 } }
    const path = '/apis/example.com/v1/namespaces/default/widgets'
    await client.ask({ method: 'POST', path, body: widget })
    await clock.advance('30s')
    await client.delete(CustomResourceDefinitions, { name: 'widgets.example.com' })
    await cluster.settle()
    const get = (from: ApiClient): Promise<string> => textOf(from, `${path}/one`)
    const ago = `-${Math.round((clock.now().getTime() - Date.UTC(2026, 0, 1, 0, 0, 50)) / 1000)}s`
    assert.equal(await codeOf(get(client)), 404)
    assert.equal((JSON.parse(await get(client.at(ago))) as typeof widget).spec.size, 3)
    assert.match(await textOf(client.at(ago), '/apis'), /example\.com/)
    assert.doesNotMatch(await textOf(client, '/apis'), /example\.com/)
  })

  it('has Secrets with their keys and without their values', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client, clock } = cluster
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"password":"aHVudGVyMg=="}}' }
    const metadata = { namespace, name: 'login', annotations }
    await client.create(Secrets, { metadata, type: 'Opaque', stringData: { password: 'hunter2', user: 'ann' } })
    await clock.advance('1m')
    const then = await client.at('-10s').get(Secrets, { namespace, name: 'login' })
    assert.deepEqual(then.data, { password: '', user: '' })
    assert.equal(then.type, 'Opaque')
    assert.doesNotMatch(JSON.stringify(then), /aHVudGVyMg|hunter2/)
    const list = await client.at('-10s').list(Secrets, {})
    assert.doesNotMatch(JSON.stringify(list), /aHVudGVyMg|hunter2/)
  })

  it('plays forward to watchers', async () => {
    await using cluster = await startCluster({ clock: 'real' })
    const { client } = cluster
    const { metadata } = await client.create(ConfigMaps, { metadata: { namespace, name: 'first' } })
    await client.create(ConfigMaps, { metadata: { namespace, name: 'second' } })
    await client.delete(ConfigMaps, { namespace, name: 'first' })
    const then = client.at(`rv:${metadata.resourceVersion}@1000x`)
    const list = await then.list(ConfigMaps, { namespace })
    const seen: string[] = []
    const { resourceVersion = '' } = list.metadata
    for await (const { type, object } of then.watch(ConfigMaps, { namespace, resourceVersion })) {
      seen.push(`${type} ${(object as ConfigMap).metadata.name}`)
      if (seen.length === 2) await client.create(ConfigMaps, { metadata: { namespace, name: 'third' } })
      if (seen.length === 3) break
    }
    assert.deepEqual(seen, ['ADDED second', 'DELETED first', 'ADDED third'])
  })

  it('lists the changes of an object between two moments', async () => {
    await using cluster = await twoMinutes()
    const { client, clock } = cluster
    await client.delete(ConfigMaps, { namespace, name: 'early' })
    await clock.advance('10s')
    const changes = async (range: string, query = ''): Promise<ChangeList> => {
      const path = `/api/v1/namespaces/${namespace}/configmaps/early${query}`
      return JSON.parse(await textOf(client.at(range), path)) as ChangeList
    }
    const shown = ({ items }: ChangeList): string[] =>
      items.map(
        ({ type, time = '', object }) => `${time.slice(14, 19)} ${type} ${(object as ConfigMap).data?.['value']}`,
      )
    const all = await changes('rv:0..')
    assert.deepEqual(shown(all), ['00:00 ADDED old', '01:00 MODIFIED new', '02:00 DELETED new'])
    assert.equal(all.to.time, '2026-01-01T00:02:10Z')
    const second = await changes('-100s..-30s')
    assert.deepEqual(shown(second), ['01:00 MODIFIED new'])
    assert.match(JSON.stringify(second.items[0]?.oldObject), /"value":"old"/)
    assert.deepEqual(shown(await changes('-5s..')), [])
    const newest = await changes('rv:0..', '?limit=1')
    assert.deepEqual([shown(newest), newest.omitted], [['02:00 DELETED new'], 2])
  })

  it('lists the changes of a collection, and those of Secrets without values', async () => {
    await using cluster = await twoMinutes()
    const { client } = cluster
    await client.create(Secrets, { metadata: { namespace, name: 'login' }, stringData: { password: 'hunter2' } })
    const path = `/api/v1/namespaces/${namespace}`
    const maps = JSON.parse(await textOf(client.at('-90s..'), `${path}/configmaps`)) as ChangeList
    assert.deepEqual(
      maps.items.map(({ type, object }) => `${type} ${object.metadata.name}`),
      ['ADDED late', 'MODIFIED early'],
    )
    const secrets = await textOf(client.at('-90s..'), `${path}/secrets`)
    assert.match(secrets, /"password":""/)
    assert.doesNotMatch(secrets, /aHVudGVyMg|hunter2/)
  })

  it('lists who made the changes, and because of which objects', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client } = cluster
    const labels = { app: 'web' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1' }] } }
    const spec = { replicas: 1, selector: { matchLabels: labels }, template }
    await client.apply(Deployments, { metadata: { namespace, name: 'web' }, spec }, FORCED)
    await cluster.settle()
    /** Who made each change, and because of what, with the revision of the change. */
    const chain = async (path: string): Promise<readonly [who: string, because: string, at: string][]> => {
      const { items } = JSON.parse(await textOf(client.at('rv:0..'), path)) as ChangeList
      return items.map(({ by, object, resourceVersion }) => [
        by?.user.replace(/^system:(serviceaccount:kube-system:)?/, '') ?? '',
        by?.because.join() ?? '',
        `${object.metadata.name}@${resourceVersion}`,
      ])
    }
    const folder = `namespaces/${namespace}`
    const [[user, , first] = NOTHING] = await chain(`/apis/apps/v1/${folder}/deployments`)
    const [[creator, why, set] = NOTHING] = await chain(`/apis/apps/v1/${folder}/replicasets`)
    const pods = await chain(`/api/v1/${folder}/pods`)
    const [[, , created] = NOTHING, [, , bound] = NOTHING] = pods
    assert.deepEqual(
      [user, creator, why],
      ['kubernetes-admin', 'deployment-controller', `deployments.apps/default/${first}`],
    )
    assert.deepEqual(
      pods.slice(0, 3).map(([who, because]) => [who.replace(/:.*/, ''), because]),
      [
        ['replicaset-controller', `replicasets.apps/default/${set}`],
        ['kube-scheduler', `pods/default/${created}`],
        ['node', `pods/default/${bound}`],
      ],
    )
  })

  it('does not run commands or show logs', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client } = cluster
    const pod = { metadata: { namespace, name: 'one' }, spec: { containers: [{ name: 'main', image: 'web' }] } }
    await client.apply(Pods, pod, FORCED)
    await cluster.settle()
    for (const part of ['log', 'exec?command=ls', 'portforward', 'proxy']) {
      const path = `/api/v1/namespaces/default/pods/one/${part}`
      assert.equal(await codeOf(textOf(client.at('-1s'), path)), 405, part)
    }
  })
})

describe('users who read the past', () => {
  const user = { name: 'ann' }
  const early = { namespace, name: 'early' }

  async function mayGet(cluster: TestCluster, at: string = '-100s'): Promise<number | undefined> {
    return codeOf(cluster.clientAs(user).at(at).get(ConfigMaps, early))
  }

  const roleRef = (kind: string, name: string): { apiGroup: string; kind: string; name: string } => ({
    apiGroup: 'rbac.authorization.k8s.io',
    kind,
    name,
  })
  const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: user.name }]
  const reader = { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }

  async function grant(cluster: TestCluster, what: 'moments' | 'namespace' | 'cluster'): Promise<void> {
    const { client } = cluster
    const rules =
      what === 'moments' ? [{ apiGroups: ['hyperkube.io'], resources: ['moments'], verbs: ['get'] }] : [reader]
    if (what === 'namespace') {
      await client.create(Roles, { metadata: { namespace, name: what }, rules })
      const ref = roleRef('Role', what)
      await client.create(RoleBindings, { metadata: { namespace, name: what }, roleRef: ref, subjects })
      return
    }
    await client.create(ClusterRoles, { metadata: { name: what }, rules })
    await client.create(ClusterRoleBindings, {
      metadata: { name: what },
      roleRef: roleRef('ClusterRole', what),
      subjects,
    })
  }

  it('need the permission to get moments', async () => {
    await using cluster = await twoMinutes()
    await grant(cluster, 'cluster')
    assert.equal(await mayGet(cluster), 403)
    await grant(cluster, 'moments')
    assert.equal(await mayGet(cluster), undefined)
  })

  it('need the present permission', async () => {
    await using cluster = await twoMinutes()
    await grant(cluster, 'moments')
    assert.equal(await mayGet(cluster), 403)
  })

  it('with a permission in the namespace need the permission of that time too', async () => {
    await using cluster = await twoMinutes()
    await grant(cluster, 'moments')
    await grant(cluster, 'namespace')
    assert.equal(await mayGet(cluster), 403)
    await cluster.clock.advance('10s')
    assert.equal(await mayGet(cluster, '-1s'), undefined)
    await cluster.client.delete(RoleBindings, { namespace, name: 'namespace' })
    assert.equal(await mayGet(cluster, '-1s'), 403)
  })

  it('see changes only with a permission in all namespaces', async () => {
    await using cluster = await twoMinutes()
    await grant(cluster, 'moments')
    await grant(cluster, 'namespace')
    await cluster.clock.advance('10s')
    const changes = (): Promise<unknown> => mayGet(cluster, 'rv:0..')
    assert.equal(await changes(), 403)
    await grant(cluster, 'cluster')
    assert.equal(await changes(), undefined)
  })

  it('see nothing of an earlier namespace of the same name', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client, clock } = cluster
    const name = 'tenant'
    await grant(cluster, 'moments')
    const open = async (): Promise<void> => {
      await client.create(Namespaces, { metadata: { name } })
      await client.create(Roles, { metadata: { namespace: name, name: 'reader' }, rules: [reader] })
      const metadata = { namespace: name, name: 'reader' }
      await client.create(RoleBindings, { metadata, roleRef: roleRef('Role', 'reader'), subjects })
    }
    await open()
    await client.create(ConfigMaps, { metadata: { namespace: name, name: 'private' } })
    await clock.advance('10s')
    const ago = (): string => `-${Math.round((clock.now().getTime() - Date.UTC(2026, 0, 1, 0, 0, 9)) / 1000)}s`
    const list = (): Promise<unknown> => cluster.clientAs(user).at(ago()).list(ConfigMaps, { namespace: name })
    assert.equal(await codeOf(list()), undefined)
    await client.delete(Namespaces, { name })
    await cluster.settle()
    await open()
    await clock.advance('10s')
    assert.equal(await codeOf(list()), 403)
  })
})

const WIDGETS: Draft<CustomResourceDefinition> = {
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
          },
        },
      },
    ],
  },
}
