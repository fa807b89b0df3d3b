/** Tests kubectl undo on whole clusters. */
import assert from 'node:assert/strict'
import { PassThrough, type Readable } from 'node:stream'
import { describe, it } from 'node:test'

import { Deployments } from '#apis/apps/v1.ts'
import { ConfigMaps, Namespaces, Secrets, ServiceAccounts, Services } from '#apis/core/v1.ts'
import { startCluster } from '#testing/cluster.ts'

import { kubectlFor, namespace, twoMinutes } from './past-bed.ts'

describe('kubectl undo', () => {
  it('undoes the last change of an object, with a plan', async () => {
    await using cluster = await twoMinutes()
    const kubectl = await kubectlFor(cluster)
    const plan = 'change  configmap/early: data.value\n'
    assert.deepEqual(await kubectl('undo cm/early --dry-run'), { code: 0, out: plan, err: '' })
    const refused = await kubectl('undo cm/early')
    assert.deepEqual(refused, {
      code: 1,
      out: plan,
      err: 'error: standard input is not a terminal: confirm the plan with --yes\n',
    })
    assert.deepEqual(await kubectl('undo cm early --yes'), {
      code: 0,
      out: `${plan}configmap/early changed\n`,
      err: '',
    })
    const { data, metadata } = await cluster.client.get(ConfigMaps, { namespace, name: 'early' })
    assert.equal(data?.['value'], 'old')
    assert.ok(metadata.managedFields?.some(({ manager }) => manager === 'kubectl-undo'))
  })

  it('undoes a deletion without a moment', async () => {
    await using cluster = await twoMinutes()
    const kubectl = await kubectlFor(cluster)
    const out = 'create  configmap/gone: new uid\nconfigmap/gone created\n'
    assert.deepEqual(await kubectl('undo cm/gone --yes'), { code: 0, out, err: '' })
    assert.equal((await cluster.client.get(ConfigMaps, { namespace, name: 'gone' })).data?.['value'], 'lost')
    const { code, err } = await kubectl('undo cm/late --yes')
    assert.deepEqual(
      [code, err],
      [1, 'error: configmaps "late" has no change in the history: give a moment, as in --to -2m\n'],
    )
  })

  it('asks for confirmation on a terminal', async () => {
    await using cluster = await twoMinutes()
    const kubectl = await kubectlFor(cluster)
    const terminal = (answer: string): Readable => {
      const input = new PassThrough()
      input.end(answer)
      return Object.assign(input, { isTTY: true })
    }
    assert.match((await kubectl('undo cm/early', terminal('n\n'))).out, /\(y\/N\): nothing was changed\n$/)
    assert.match((await kubectl('undo cm/early', terminal('y\n'))).out, /\(y\/N\): configmap\/early changed\n$/)
  })

  it('creates deleted objects again and deletes new ones', async () => {
    await using cluster = await twoMinutes()
    const kubectl = await kubectlFor(cluster)
    const { code, out } = await kubectl('undo --since -100s --yes')
    assert.equal(code, 0)
    const lines = ['change  configmap/early: data.value', 'create  configmap/gone: new uid', 'delete  configmap/late']
    assert.deepEqual(out.split('\n').slice(0, 3), lines)
    assert.equal((await cluster.client.get(ConfigMaps, { namespace, name: 'gone' })).data?.['value'], 'lost')
    assert.equal((await kubectl('undo --since -100s')).out, 'Nothing to undo\n')
  })

  it('refuses what another manager changed as well, and goes on', async () => {
    await using cluster = await twoMinutes()
    const { client, clock } = cluster
    const kubectl = await kubectlFor(cluster)
    for (const name of ['one', 'two']) {
      await client.create(ConfigMaps, { metadata: { namespace, name }, data: { value: '1' } }, { fieldManager: 'ann' })
    }
    await clock.advance('10s')
    const write = async (name: string, value: string, fieldManager: string): Promise<void> => {
      const { metadata, data } = await client.get(ConfigMaps, { namespace, name })
      await client.update(ConfigMaps, { metadata, data: { ...data, [fieldManager]: value } }, { fieldManager })
    }
    await write('one', '2', 'bob')
    await write('two', '2', 'bob')
    await clock.advance('10s')
    await write('two', '3', 'carl')
    await clock.advance('1s')
    const { code, out } = await kubectl('undo --since -15s --by bob --yes')
    assert.equal(code, 1)
    assert.match(out, /^change {2}configmap\/one: data.bob$/m)
    assert.match(out, /^refuse {2}configmap\/two: carl changed it at \S+Z \(data.carl\)$/m)
    assert.match(out, /^configmap\/one changed$/m)
    assert.deepEqual((await client.get(ConfigMaps, { namespace, name: 'two' })).data, {
      value: '1',
      bob: '2',
      carl: '3',
    })
  })

  it('says what it cannot bring back', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client, clock } = cluster
    const kubectl = await kubectlFor(cluster)
    await client.create(Secrets, { metadata: { namespace, name: 'login' }, stringData: { password: 'hunter2' } })
    await clock.advance('10s')
    await client.delete(Secrets, { namespace, name: 'login' })
    await clock.advance('1s')
    const text = 'refuse  secret/login: it was deleted, and the past does not have its values\n'
    assert.deepEqual(await kubectl('undo --since -5s --yes'), { code: 1, out: text, err: '' })
    const rows = [
      ['undo pod/web', /pods are not undone, because users do not decide about them/],
      ['undo cm/none', /"none" does not exist: give a moment/],
      ['undo', /Give TYPE\/NAME, or --since/],
      ['undo cm', /Give the name of one of the cm/],
      ['undo cm/a --to -1s --since -1s', /--to and --since cannot be used together/],
    ] as const
    for (const [line, message] of rows) {
      const { code, err } = await kubectl(line)
      assert.equal(code, 1)
      assert.match(err, message, line)
    }
  })

  it('brings back 200 objects of a deleted namespace', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client, clock } = cluster
    const kubectl = await kubectlFor(cluster)
    const shop = { namespace: 'shop' }
    await client.create(Namespaces, { metadata: { name: 'shop', labels: { team: 'a' } } })
    await client.create(ServiceAccounts, { metadata: { ...shop, name: 'builder' } })
    const all = Array.from({ length: 67 }, (_, index) => `web-${index}`)
    for (const name of all) {
      const labels = { app: name }
      await client.create(ConfigMaps, { metadata: { ...shop, name }, data: { name } })
      await client.create(Services, {
        metadata: { ...shop, name },
        spec: { selector: labels, ports: [{ port: 80, targetPort: 80 }] },
      })
      const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'nginx', resources: {} }] } }
      const spec = { replicas: 0, selector: { matchLabels: labels }, template, strategy: {} }
      await client.create(Deployments, { metadata: { ...shop, name }, spec })
    }
    await cluster.settle()
    await clock.advance('10s')
    const moment = clock.now().toISOString()
    const listAll = async (): Promise<unknown[]> => {
      const [maps, services, deployments] = [
        await client.list(ConfigMaps, { ...shop, labelSelector: '' }),
        await client.list(Services, shop),
        await client.list(Deployments, shop),
      ]
      return [
        maps.items.map(({ data, metadata: { name } }) => [name, name === 'kube-root-ca.crt' ? {} : data]),
        services.items.map(({ spec, metadata: { name } }) => [name, spec]),
        deployments.items.map(({ spec, metadata: { name } }) => [name, spec]),
      ]
    }
    const earlier = await listAll()
    await clock.advance('10s')
    assert.equal((await kubectl('delete namespace shop --wait=false')).code, 0)
    assert.match((await kubectl(`undo -n shop --to ${moment} --yes`)).err, /"shop" is being deleted: try again/)
    await cluster.settle()
    const { code, out, err } = await kubectl(`undo -n shop --to ${moment} --yes`)
    assert.deepEqual([code, err], [0, ''])
    const plan = out.split('\n').filter((line) => line.startsWith('create  '))
    assert.equal(plan[0], 'create  namespace/shop: new uid')
    assert.equal(plan.length, 1 + 3 * all.length + 1)
    await cluster.settle()
    assert.deepEqual(await listAll(), earlier)
    assert.equal((await client.get(Namespaces, { name: 'shop' })).metadata.labels?.['team'], 'a')
  })
})
