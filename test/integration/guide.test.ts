/** Runs the examples of the guides and compares their output. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'

import { buildHelm } from '../upstream/go-program.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

const HYPERKUBE = join(ROOT, 'bin', 'hyperkube')
const HELM = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'hyperkube', 'helm')
const has = (program: string): boolean => spawnSync('which', [program], { env: shellEnv('/') }).status === 0

function shellEnv(folder: string): NodeJS.ProcessEnv {
  return { ...process.env, HOME: folder, PATH: `${join(ROOT, 'bin')}:${HELM}:${process.env.PATH}` }
}

/** Runs what a guide says to type, in a folder of its own; what it printed. */
function typed(folder: string, guide: string, more: NodeJS.ProcessEnv = {}): string {
  const [, script = ''] = /```sh\n(.*?)```/s.exec(read(guide)) ?? []
  const env = { ...shellEnv(folder), ...more }
  const { status, stdout, stderr } = spawnSync('sh', ['-euc', script], { cwd: folder, env, encoding: 'utf8' })
  assert.equal(status, 0, `${stdout}${stderr}`)
  return stdout
}

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'hyperkube-guide-'))
  t.after(() => {
    spawnSync(HYPERKUBE, ['down', '--data-dir', join(folder, 'cluster')])
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

describe('docs/guide: charts', () => {
  const why =
    (has('helm') || has('go')) && has('kubectl') ? false : 'there is no kubectl, or no helm and no Go to build it with'
  it('contains the output of Helm, from install to uninstall', { skip: why }, (t) => {
    if (!has('helm')) buildHelm()
    const folder = folderFor(t)
    cpSync(join(ROOT, 'examples', 'chart'), join(folder, 'chart'), { recursive: true })
    const said = typed(folder, 'docs/guide/test-your-chart.md')
    assert.match(said, /STATUS: deployed[^]*Phase: +Succeeded[^]*Rollback was a success[^]*web +2\/2[^]*uninstalled/)
    assert.equal(existsSync(join(folder, 'cluster')), false)
  })
})

describe('docs/guide: a cluster inside a program', () => {
  it('contains the code of the example and its output', () => {
    const guide = read('docs/guide/embed-it.md')
    const [, shown] = /```ts\n(.*?)```/s.exec(guide) ?? []
    const [, said] = /```\n\n```\n(.*?)```/s.exec(guide) ?? []
    assert.equal(shown, read('examples/embedded.ts'))
    const args = ['--conditions=hyperkube-source', join(ROOT, 'examples/embedded.ts'), '6']
    assert.equal(spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout, said)
  })
})

describe('docs/guide: troubleshooting', () => {
  it('quotes messages that the program contains', () => {
    const files = ['src/cmd', 'src/client', 'src/storage'].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => read(join(folder, name))),
    )
    const rows = Array.from(read('docs/guide/when-something-is-wrong.md').matchAll(/^\| `([^`]+)` \|/gm))
    assert.equal(rows.length, 7)
    for (const [, text = ''] of rows) {
      for (const part of text.split(/…|\b[NM]\b|6443/).map((piece) => piece.trim()))
        assert.ok(part === '' || files.some((file) => file.includes(part)), `nothing says "${part}"`)
    }
  })

  it('shows why a pod stays Pending', { skip: has('kubectl') ? false : 'there is no kubectl' }, (t) => {
    const folder = folderFor(t)
    const KUBECONFIG = join(folder, 'kubeconfig')
    const flags = [
      'up',
      '--detach',
      '--runtime=simulated',
      '--secure-port=0',
      `--data-dir=${join(folder, 'cluster')}`,
      `--kubeconfig=${KUBECONFIG}`,
    ]
    assert.equal(spawnSync(HYPERKUBE, flags).status, 0)
    const said = typed(folder, 'docs/guide/when-something-is-wrong.md', { KUBECONFIG })
    assert.match(said, /0\/1 nodes are available: 1 Insufficient cpu/)
  })
})

describe('docs/guide: tests', () => {
  it('contains the code of the example', () => {
    const [, shown] = /```ts\n(.*?)```/s.exec(read('docs/guide/test-your-operator.md')) ?? []
    assert.equal(shown, read('examples/cluster.test.ts'))
  })

  it('has an example whose tests pass', () => {
    const { NODE_TEST_CONTEXT: _ours, ...env } = process.env
    const args = ['--conditions=hyperkube-source', '--test', join(ROOT, 'examples/cluster.test.ts')]
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
    assert.equal(status, 0, stdout)
    assert.match(stdout, /pass 3/)
  })
})
