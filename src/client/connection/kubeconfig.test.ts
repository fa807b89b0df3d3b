import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { constants } from 'node:fs'
import { mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

import { createLock, waitForLock } from './kubeconfig-lock.ts'
import { freeName, kubeconfigText, mergeKubeconfig, removeFromKubeconfig, removeOwned } from './kubeconfig.ts'

const entry = {
  name: 'hyperkube',
  server: 'https://127.0.0.1:6443',
  certificateAuthority: 'CA',
  clientCertificate: 'CRT',
  clientKey: 'KEY',
}
const theirs =
  'apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://prod\n  name: prod\nusers: []\ncontexts:\n- context:\n    cluster: prod\n  name: prod\ncurrent-context: prod\n'

async function fileFor(t: TestContext, text?: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubeconfig-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'config')
  if (text !== undefined) await writeFile(file, text)
  return file
}

interface Config {
  clusters: { name: string; cluster: Record<string, string> }[]
  contexts: { name: string }[]
  'current-context': string
}

describe('kubeconfig file', () => {
  it('can be a named pipe, which is not read before the write', async (t) => {
    const file = await fileFor(t)
    execFileSync('mkfifo', [file])
    const owner = 'x'
    assert.equal(await freeName(file, ['hyperkube'], { owner, certificateAuthority: 'CA' }), 'hyperkube')
    const reader = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
    t.after(() => reader.close())
    await mergeKubeconfig(file, entry)
    assert.equal((await reader.read(Buffer.alloc(10_000))).buffer.toString().replace(/\0+$/, ''), kubeconfigText(entry))
    assert.deepEqual(await removeOwned(file, owner), [])
    assert.ok((await stat(file)).isFIFO())
  })

  it('is changed only when kubectl config has released its lock', async (t) => {
    const file = await fileFor(t, theirs)
    const lock = await createLock(file)
    const merging = mergeKubeconfig(file, entry)
    // The owner of the lock writes last, as kubectl would.
    await writeFile(file, theirs.replaceAll('prod', 'staging'))
    await lock[Symbol.asyncDispose]()
    await merging
    const { clusters } = parseYaml(await readFile(file, 'utf8')) as unknown as Config
    assert.deepEqual(
      clusters.map(({ name }) => name),
      ['staging', 'hyperkube'],
    )
    assert.deepEqual(await readdir(dirname(file)), ['config'])
  })

  it('keeps the entries of programs that change it at the same time', async (t) => {
    const file = await fileFor(t)
    const names = ['a', 'b', 'c', 'd', 'e']
    await Promise.all(names.map((name) => mergeKubeconfig(file, { ...entry, name })))
    const { clusters } = parseYaml(await readFile(file, 'utf8')) as unknown as Config
    assert.deepEqual(clusters.map(({ name }) => name).sort(), names)
  })

  it('stays unchanged while the lock of a dead program exists, and the error names the lock', async (t) => {
    const file = await fileFor(t, theirs)
    await using _lock = await createLock(file)
    const clock = createVirtualClock()
    const waiting = waitForLock(file, clock)
    const rejected = assert.rejects(waiting, /is locked by another program; delete ".*config\.lock" if no kubectl/)
    await clock.advance(6_000)
    await rejected
    assert.equal(await readFile(file, 'utf8'), theirs)
  })

  it('is created with mode 0600 and inline credentials', async (t) => {
    const file = await fileFor(t)
    await mergeKubeconfig(file, entry)
    assert.equal(await readFile(file, 'utf8'), kubeconfigText(entry))
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    const config = parseYaml(kubeconfigText(entry)) as unknown as Config
    assert.deepEqual(config.clusters[0], {
      name: 'hyperkube',
      cluster: { server: entry.server, 'certificate-authority-data': 'Q0E=' },
    })
  })

  it('keeps entries of other programs when a cluster adds and removes its entry', async (t) => {
    const file = await fileFor(t, theirs)
    await mergeKubeconfig(file, entry)
    await mergeKubeconfig(file, { ...entry, server: 'https://127.0.0.1:7443' })
    const merged = parseYaml(await readFile(file, 'utf8')) as unknown as Config
    assert.deepEqual(
      merged.clusters.map(({ name, cluster }) => [name, cluster['server']]),
      [
        ['prod', 'https://prod'],
        ['hyperkube', 'https://127.0.0.1:7443'],
      ],
    )
    assert.equal(merged['current-context'], 'hyperkube')
    await removeFromKubeconfig(file, 'hyperkube')
    const removed = parseYaml(await readFile(file, 'utf8')) as unknown as Config
    assert.deepEqual([removed.clusters.map(({ name }) => name), removed['current-context']], [['prod'], 'prod'])
    assert.deepEqual(removed, { preferences: {}, ...(parseYaml(theirs) as object) })
  })

  it('restores the previous current-context, or an earlier one if the previous context no longer exists', async (t) => {
    const file = await fileFor(t, theirs)
    const names = ['one', 'two', 'three']
    for (const name of names) await mergeKubeconfig(file, { ...entry, name, owner: name })
    const current = async (): Promise<unknown> =>
      (parseYaml(await readFile(file, 'utf8')) as unknown as Config)['current-context']
    await removeFromKubeconfig(file, 'two')
    assert.equal(await current(), 'three')
    await removeFromKubeconfig(file, 'three')
    assert.equal(await current(), 'one')
    // A second start of the same cluster changes nothing.
    await mergeKubeconfig(file, { ...entry, name: 'one', owner: 'one' })
    await removeFromKubeconfig(file, 'one')
    assert.equal(await current(), 'prod')
  })

  it('loses current-context with the last context, and keeps one that the user chose', async (t) => {
    const file = await fileFor(t)
    await mergeKubeconfig(file, { ...entry, owner: '/a' })
    await removeOwned(file, '/a')
    assert.ok(!('current-context' in (parseYaml(await readFile(file, 'utf8')) as object)))
    const chosen = await fileFor(t, theirs.replace('current-context: prod', 'current-context: chosen'))
    await mergeKubeconfig(chosen, entry)
    const text = (await readFile(chosen, 'utf8')).replace('current-context: hyperkube', 'current-context: prod')
    await writeFile(chosen, text)
    await removeFromKubeconfig(chosen, 'hyperkube')
    assert.equal((parseYaml(await readFile(chosen, 'utf8')) as unknown as Config)['current-context'], 'prod')
  })

  it('records the owner of an entry, so that only the owner removes it', async (t) => {
    const file = await fileFor(t, theirs)
    const names = ['prod', 'hyperkube', 'hyperkube-b']
    const a = { ...entry, owner: '/a' }
    const b = { ...entry, owner: '/b', certificateAuthority: 'other CA' }
    assert.equal(await freeName(file, names, a), 'hyperkube')
    await mergeKubeconfig(file, a)
    assert.equal(await freeName(file, names, a), 'hyperkube')
    assert.equal(await freeName(file, names, b), 'hyperkube-b')
    assert.equal(await freeName(file, names, { ...b, certificateAuthority: entry.certificateAuthority }), 'hyperkube')
    await mergeKubeconfig(file, { ...b, name: 'hyperkube-b' })
    assert.equal(await freeName(file, ['prod', 'hyperkube'], b), undefined)
    assert.deepEqual(await removeOwned(file, '/a'), ['hyperkube'])
    const left = parseYaml(await readFile(file, 'utf8')) as unknown as Config
    assert.deepEqual(
      [left.clusters.map(({ name }) => name), left['current-context']],
      [['prod', 'hyperkube-b'], 'hyperkube-b'],
    )
  })

  it('is not overwritten if it has another format', async (t) => {
    const file = await fileFor(t, 'just some text')
    await assert.rejects(mergeKubeconfig(file, entry), /is not a kubeconfig/)
    assert.equal(await readFile(file, 'utf8'), 'just some text')
  })
})
