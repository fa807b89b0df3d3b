/**
 * Tests that failures of `hyperkube up` give clear messages and lose no data. A used port, a locked data directory and
 * a broken kubeconfig are in up.test.ts.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, it } from 'node:test'

import { PodCertificateRequests } from '#apis/certificates/v1beta1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'
import { type Connected, connect } from '#client/connection/connect.ts'
import { isNotFound, statusOf } from '#meta/status.ts'

const HYPERKUBE = join(import.meta.dirname, '..', '..', 'bin', 'hyperkube')
const dir = mkdtempSync(join(tmpdir(), 'hyperkube-troubles-'))
const kubeconfig = join(dir, 'kubeconfig')
const disk = join(dir, 'disk')
const namespace = 'default'
const map = { namespace, name: 'kept' }

function run(...args: string[]): { readonly code: number | null; readonly out: string; readonly err: string } {
  const env = { ...process.env, HOME: dir }
  const { status: code, stdout: out, stderr: err } = spawnSync(HYPERKUBE, args, { encoding: 'utf8', env })
  return { code, out, err }
}

const up = (data: string, ...more: string[]): ReturnType<typeof run> =>
  run('up', '--nodes=0', '--secure-port=0', `--data-dir=${data}`, `--kubeconfig=${kubeconfig}`, ...more)

/** Another file system, of so many MiB. */
const mount = (sizeMib: number): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMib}m`, 'tmpfs', disk]).status === 0
const unmount = (): void => void spawnSync('umount', [disk])

mkdirSync(disk)
const mayMount = process.getuid?.() === 0 && mount(1)
const whyNoDisk = mayMount ? false : 'only root can mount a small disk'
if (mayMount) unmount()

after(() => {
  for (const data of [join(disk, 'data'), join(dir, 'newer'), join(dir, 'gates')]) run('down', `--data-dir=${data}`)
  if (mayMount) unmount()
  rmSync(dir, { recursive: true, force: true })
})

const reach = (): Promise<Connected> => connect({ userAgent: 'test', kubeconfig })

describe('hyperkube up with invalid settings or a full disk', () => {
  it('accepts disabled feature gates and API versions, and reports unknown ones', async () => {
    const data = join(dir, 'gates')
    assert.match(up(data, '--feature-gates=Nonsense=true').err, /unrecognized feature gate: Nonsense/)
    const address = '--kubelet-address: "everywhere" is not an IP address'
    assert.ok(up(data, '--kubelet-address=everywhere').err.includes(address))
    const gates = '--feature-gates=PodCertificateRequest=true'
    const started = up(data, '--detach', gates, '--runtime-config=certificates.k8s.io/v1beta1=true')
    assert.equal(started.code, 0, started.err)
    await using connection = await reach()
    assert.deepEqual((await connection.client.list(PodCertificateRequests)).items, [])
  })

  it('refuses a data directory of a newer version without changing it', async () => {
    const data = join(dir, 'newer')
    assert.equal(up(data, '--detach').code, 0)
    {
      await using connection = await reach()
      await connection.client.create(ConfigMaps, { metadata: map, data: { a: '1' } })
    }
    run('down', `--data-dir=${data}`)
    const store = join(data, 'store.db')
    const setFormat = (change: number): void => {
      using db = new DatabaseSync(store)
      const { user_version: format } = db.prepare('PRAGMA user_version').get() as { user_version: number }
      db.exec(`PRAGMA user_version = ${format + change}`)
    }
    setFormat(1)
    const before = readFileSync(store)
    const { code, err } = up(data)
    assert.equal(code, 1)
    assert.match(
      err,
      /^Error: Cannot open the datastore ".*": "\S+store\.db" has format \d+, this version of hyperkube reads \d+\n$/,
    )
    assert.ok(before.equals(readFileSync(store)), 'nothing was changed')
    setFormat(-1)
    assert.equal(up(data, '--detach').code, 0)
    await using connection = await reach()
    assert.deepEqual((await connection.client.get(ConfigMaps, map)).data, { a: '1' })
  })

  it('reports a full disk at start', { skip: whyNoDisk }, () => {
    assert.ok(mount(1))
    try {
      const { code, err } = up(join(disk, 'data'))
      const said = `Error: The disk of ${join(disk, 'data')} is full; free some space, or set another directory with --data-dir`
      assert.equal(code, 1)
      assert.equal(
        err
          .split('\n')
          .filter((line) => line.startsWith('Error'))
          .join(),
        said,
      )
      assert.doesNotMatch(err, /^ +at /m)
    } finally {
      unmount()
    }
  })

  it(
    'serves reads when the disk fills up, refuses writes with a clear message, and accepts them again when there is space',
    { skip: whyNoDisk },
    async () => {
      assert.ok(mount(64))
      const data = join(disk, 'data')
      assert.equal(up(data, '--detach').code, 0)
      {
        await using connection = await reach()
        const { client } = connection
        await client.create(ConfigMaps, { metadata: map, data: { a: '1' } })
        const filler = join(disk, 'filler')
        const { bavail, bsize } = statfsSync(disk)
        writeFileSync(filler, Buffer.alloc(bavail * bsize))
        const large = { a: 'x'.repeat(500_000) }
        const fill = async (): Promise<void> => {
          for (let n = 0; n < 100; n++)
            await client.create(ConfigMaps, { metadata: { namespace, name: `large-${n}` }, data: large })
        }
        await assert.rejects(fill(), (error) => {
          assert.equal(statusOf(error)?.code, 507)
          assert.match(statusOf(error)?.message ?? '', /is full.*free some space/)
          return true
        })
        assert.deepEqual((await client.get(ConfigMaps, map)).data, { a: '1' })
        rmSync(filler)
        await client.delete(ConfigMaps, map)
      }
      run('down', `--data-dir=${data}`)
      assert.equal(up(data, '--detach').code, 0)
      await using connection = await reach()
      await assert.rejects(connection.client.get(ConfigMaps, map), (error) => isNotFound(error))
      await connection.client.create(ConfigMaps, { metadata: map, data: { b: '2' } })
    },
  )
})
