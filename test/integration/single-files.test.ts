/**
 * Tests the programs that are published as single files. Each runs alone in an empty directory, under any name, and
 * prints the same as the sources.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'

import { makePayload } from '#provision/payload.ts'

import { end, launch, prepareServer, untilReady } from '../upstream/kube-apiserver.ts'
import { kind, skip } from './provision/this-machine.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '..', '..')

/** The bundle of each program, by name. */
const FILES: Readonly<Record<string, string>> = {
  kubectl: 'kubectl.cjs',
  'kube-apiserver': 'kube-apiserver.cjs',
  apiserver: 'kube-apiserver.cjs',
  'kube-controller-manager': 'kube-controller-manager.cjs',
  'controller-manager': 'kube-controller-manager.cjs',
  up: 'up.cjs',
  node: 'node.cjs',
}

describe('a bundled program', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'hyperkube-single-'))
  const there = join(folder, 'there')
  const published = join(there, 'bin', 'hyperkube')
  const env = { PATH: '/usr/bin:/bin', HOME: folder, XDG_CACHE_HOME: join(folder, 'compiled') }
  const said = async (program: string, ...args: readonly string[]): Promise<string> =>
    (await run(program, args, { env })).stdout

  before(async () => {
    const bundle = join(folder, 'bundle')
    await run(process.execPath, [join(ROOT, 'scripts', 'build.ts'), '--into', bundle])
    const { file } = await makePayload(kind, { root: ROOT, cache: join(folder, 'cache'), bundle })
    await mkdir(there)
    await run('tar', ['-xzf', file, '-C', there])
    // Removes the common bundle, so that only standalone bundles can run.
    rmSync(join(there, 'dist', 'hyperkube.mjs'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('is part of the package', () => {
    const files = readdirSync(join(there, 'dist')).filter((name) => name.endsWith('.cjs'))
    assert.deepEqual(files.toSorted(), [...new Set(Object.values(FILES))].toSorted())
  })

  for (const name of Object.keys(FILES)) {
    it(`prints the same as its sources if it is ${name}`, async () => {
      const [own, ofSources] = await Promise.all([
        said(published, name, '--help'),
        said(join(ROOT, 'bin', 'hyperkube'), name, '--help'),
      ])
      assert.equal(own, ofSources)
      assert.match(own, /\S/)
    })
  }

  it('can be started by its name', async () => {
    for (const name of ['kube-apiserver', 'kube-controller-manager']) {
      const link = join(folder, name)
      symlinkSync(published, link)
      assert.match(await said(link, '--version'), /^Kubernetes v1\.36\./)
      assert.match(await said(link, '--help'), new RegExp(`^\\s*${name} \\[flags\\]`, 'm'))
    }
  })

  it('can run kube-apiserver', async () => {
    const own = join(folder, 'server')
    await mkdir(own)
    const prepared = await prepareServer(own)
    const flags = [...prepared.flags, `--datastore=sqlite:${join(own, 'store.db')}`]
    const child = await launch(published, ['kube-apiserver', ...flags], join(own, 'log'))
    try {
      await untilReady(prepared, child)
    } finally {
      await end(child, 'SIGTERM')
    }
  })

  it('can run hyperkube up', async () => {
    const args = [`--data-dir=${join(folder, 'data')}`, `--kubeconfig=${join(folder, 'config')}`, '-o', 'json']
    const child = spawn(published, ['up', '--runtime=simulated', ...args], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const [line] = (await once(child.stdout, 'data')) as [Buffer]
      assert.equal((JSON.parse(line.toString()) as { nodes: number }).nodes, 1)
    } finally {
      child.kill('SIGTERM')
      await once(child, 'close')
    }
  })
})
