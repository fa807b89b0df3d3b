/**
 * Tests the executable in every way in which users start it: through sh, a symlink, an old and a new Node. Each start
 * runs the right program with the right arguments, returns its exit code, and leaves no process behind.
 */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'

import { KUBE_PROGRAMS } from '#cmd/main.ts'
import { makeSymlinks } from '#cmd/make-symlinks.ts'
import { realClock, sleep } from '#lib/clock.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const HYPERKUBE = join(ROOT, 'bin', 'hyperkube')

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

interface Started {
  readonly child: ChildProcessWithoutNullStreams
  /** Resolves to the first line of output. */
  readonly firstLine: Promise<string>
  readonly ended: Promise<Ended>
}

function start(command: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): Started {
  const [file = '', ...args] = command
  const child = spawn(file, args, { ...options, stdio: 'pipe' })
  let [out, err] = ['', '']
  const firstLine = new Promise<string>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString()
      if (out.includes('\n')) resolve(out.slice(0, out.indexOf('\n')))
    })
  })
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, out, err }))
  return { child, firstLine, ended }
}

function run(command: readonly string[], options?: { cwd?: string; env?: NodeJS.ProcessEnv }): Promise<Ended> {
  const started = start(command, options)
  started.child.stdin.end()
  return started.ended
}

/** A node on the PATH that is too old to run the sources. */
const oldNode = (process.env['PATH'] ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'node'))
  .filter((path) => existsSync(path))
  .find((path) => Number(/^v(\d+)/.exec(execFileSync(path, ['--version'], { encoding: 'utf8' }))?.[1]) < 22)

const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'hyperkube-program-')))
after(() => rmSync(scratch, { recursive: true, force: true }))

/** Makes a new Node pass for one between 22.15 and 24: too old for the sources, new enough to exec. */
const pretender = join(scratch, 'pretend.cjs')
writeFileSync(
  pretender,
  `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.15.0' } })\n`,
)

/** How one can start the file `path`, and whether that ends as one process. */
const STARTS: readonly { name: string; command: (path: string) => string[]; onlyOne: boolean; skip: string | false }[] =
  [
    { name: 'sh', command: (path) => [path], onlyOne: true, skip: process.platform === 'win32' && 'no sh' },
    { name: 'a new node', command: (path) => [process.execPath, path], onlyOne: true, skip: false },
    {
      name: 'an old node that can exec',
      command: (path) => [process.execPath, '--require', pretender, path],
      onlyOne: true,
      skip: process.platform === 'win32' && 'no exec',
    },
    {
      name: 'an old node that cannot exec',
      command: (path) => [oldNode ?? '', path],
      onlyOne: false,
      skip: oldNode === undefined && 'no node older than 22 on the PATH',
    },
  ]

describe('bin/hyperkube', () => {
  for (const { name, command, skip } of STARTS) {
    it(`prints the versions of hyperkube and Kubernetes when started by ${name}`, { skip }, async () => {
      const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
      const out = `hyperkube v${version}\nKubernetes v1.36.4 (reported as v1.36.4+hyperkube1)\n`
      assert.deepEqual(await run([...command(HYPERKUBE), '--version']), { code: 0, signal: null, out, err: '' })
    })
  }

  it('prints help and exits with 1 without arguments', async () => {
    const { code, out, err } = await run([HYPERKUBE])
    assert.deepEqual([code, err], [1, ''])
    assert.match(out, /^hyperkube is the whole of Kubernetes/)
  })
})

describe('hyperkube --make-symlinks', () => {
  const cwd = join(scratch, 'links')
  before(() => mkdirSync(cwd))

  it('makes a working link for each Kubernetes program and alias', async () => {
    assert.deepEqual(await run([HYPERKUBE, '--make-symlinks'], { cwd }), { code: 0, signal: null, out: '', err: '' })
    for (const [link, name] of [
      ['kube-apiserver', 'kube-apiserver'],
      ['proxy', 'kube-proxy'],
      ['kubectl', 'kubectl'],
    ] as const) {
      const { code, out } = await run([`./${link}`, '--help'], { cwd })
      assert.equal(code, 0)
      assert.match(out, new RegExp(`Usage:\n {2}${name} `))
    }
  })

  it('works through nested links, from another directory, and from PATH', async () => {
    symlinkSync(join('links', 'kubelet'), join(scratch, 'kubelet'))
    const { out } = await run(['kubelet', '--version'], {
      env: { ...process.env, PATH: `${scratch}:${process.env['PATH']}` },
    })
    assert.equal(out, 'Kubernetes v1.36.4+hyperkube1\n')
  })

  it('accepts correct existing links', async () => {
    assert.equal((await run([HYPERKUBE, '--make-symlinks'], { cwd })).code, 0)
  })

  it('fails and names each link that it could not make, without replacing other files', async () => {
    for (const name of ['kubectl', 'proxy']) {
      rmSync(join(cwd, name))
      writeFileSync(join(cwd, name), 'mine')
    }
    const { code, out, err } = await run([HYPERKUBE, '--make-symlinks'], { cwd })
    assert.deepEqual([code, out], [1, ''])
    assert.deepEqual(
      err.match(/^Error: cannot make symlink "[^"]+"/gm),
      ['proxy', 'kubectl'].map((name) => `Error: cannot make symlink "${join(cwd, name)}"`),
    )
    assert.equal(readFileSync(join(cwd, 'proxy'), 'utf8'), 'mine')
  })
})

describe('makeSymlinks on Windows', () => {
  it('writes command files that pass on the name', async () => {
    const folder = join(scratch, 'windows')
    mkdirSync(folder)
    const shim = pathToFileURL(join(scratch, 'hyperkube'))
    assert.deepEqual(await makeSymlinks(KUBE_PROGRAMS, folder, shim, 'win32'), [])
    const text = readFileSync(join(folder, 'proxy.cmd'), 'utf8')
    assert.equal(
      text,
      `@echo off\r\nsetlocal\r\nset "HYPERKUBE_ARGV0=proxy"\r\n"${join(scratch, 'hyperkube')}.cmd" %*\r\n`,
    )
    assert.equal((await makeSymlinks(KUBE_PROGRAMS, folder, shim, 'win32')).length, 11)
  })
})

/** A package with our shim and this program: says what it was given, waits for a signal, and obeys it or not. */
const PROGRAM = `
import('${pathToFileURL(join(ROOT, 'src', 'cmd', 'process.ts')).href}').then(({ runProcess }) => runProcess(async (invokedAs, { args, env, stdout }, signal) => {
  const leaked = Object.keys(env).filter((name) => name.startsWith('HYPERKUBE_'))
  stdout.write(JSON.stringify({ invokedAs, args, leaked, pid: process.pid }) + '\\n')
  if (args[0] === 'echo') return 5
  const timer = setInterval(() => undefined, 1000)
  await new Promise((resolve) => signal.addEventListener('abort', () => args[0] === 'stubborn' || resolve()))
  clearInterval(timer)
  stdout.write('stopped: ' + signal.reason.message + '\\n')
  return 0
}))
`

interface Report {
  readonly invokedAs: string
  readonly args: readonly string[]
  readonly leaked: readonly string[]
  readonly pid: number
}

describe('program that bin/hyperkube starts', () => {
  const home = join(scratch, 'package')
  const shim = join(home, 'bin', 'hyperkube')
  before(() => {
    cpSync(join(ROOT, 'bin'), join(home, 'bin'), { recursive: true })
    writeFileSync(join(home, 'bin', 'entry.cjs'), PROGRAM)
    symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'))
    symlinkSync(shim, join(home, 'kubectl'))
  })

  for (const { name, command, onlyOne, skip } of STARTS) {
    describe(`with launcher ${name}`, { skip, timeout: 30_000 }, () => {
      it('gets its name and arguments unchanged, and its exit code is returned', async () => {
        const args = ['echo', 'a b', '$HOME', '*', '"', "'", '', '--', '--version=x', 'é']
        const { code, out, err } = await run([...command(join(home, 'kubectl')), ...args])
        const { invokedAs, leaked, ...report } = JSON.parse(out) as Report
        assert.deepEqual([code, err, invokedAs, report.args, leaked], [5, '', 'kubectl', args, []])
      })

      it('shuts down gracefully on SIGTERM, without leftover processes', async () => {
        const { child, firstLine, ended } = start([...command(shim), 'wait'])
        const { pid } = JSON.parse(await firstLine) as Report
        assert.equal(pid === child.pid, onlyOne)
        child.kill('SIGTERM')
        const { code, out } = await ended
        assert.deepEqual([code, out.split('\n')[1]], [0, 'stopped: Received SIGTERM'])
        await gone(pid)
      })

      it('exits at once on the second signal', async () => {
        const { child, firstLine, ended } = start([...command(shim), 'stubborn'])
        const { pid } = JSON.parse(await firstLine) as Report
        child.kill('SIGINT')
        // Two equal signals that are both pending arrive as one, so the second is sent until it has its effect.
        const nag = once(child, 'exit')
        while (child.exitCode === null && child.signalCode === null) {
          await Promise.race([nag, sleep(realClock, 20)])
          child.kill('SIGTERM')
        }
        assert.equal((await ended).code, 1)
        await gone(pid)
      })

      it('exits if the launcher is killed', async () => {
        const { child, firstLine, ended } = start([...command(shim), 'stubborn'])
        const { pid } = JSON.parse(await firstLine) as Report
        child.kill('SIGKILL')
        assert.equal((await ended).signal, 'SIGKILL')
        await gone(pid)
      })
    })
  }

  for (const PATH of [undefined, '', '/nonexistent']) {
    const skip = process.platform === 'win32' && 'no sh'
    it(`starts through a symlink with PATH ${JSON.stringify(PATH)}`, { skip }, async () => {
      const env = PATH === undefined ? {} : { PATH }
      const { code, out, err } = await run([join(home, 'kubectl'), 'echo'], { env })
      assert.deepEqual([code, err, (JSON.parse(out) as Report).invokedAs], [5, '', 'kubectl'])
    })
  }

  it('exits silently if its output pipe is closed', async () => {
    const { child, ended } = start([shim, 'echo'])
    child.stdout.destroy()
    const { code, err } = await ended
    assert.deepEqual([code, err], [141, ''])
  })

  it(
    'reports the required Node.js version if there is none',
    { skip: process.platform === 'win32' && 'no sh' },
    async () => {
      const bare = join(scratch, 'bare')
      const tools = join(bare, 'tools')
      mkdirSync(tools, { recursive: true })
      cpSync(join(ROOT, 'bin'), join(bare, 'bin'), { recursive: true })
      for (const tool of ['sh', 'env', 'readlink', 'uname']) {
        const found = ['/bin', '/usr/bin'].map((folder) => join(folder, tool)).find((path) => existsSync(path))
        if (found !== undefined) symlinkSync(found, join(tools, tool))
      }
      const { code, out, err } = await run([join(bare, 'bin', 'hyperkube'), '--version'], { env: { PATH: tools } })
      assert.deepEqual([code, out], [1, ''])
      assert.match(err, /^hyperkube needs Node\.js 24 or newer and found none\.\nRun "npm install" in /)
    },
  )

  it('uses a recent enough node in PATH if the package contains none', async () => {
    const bare = join(scratch, 'path-node')
    cpSync(join(ROOT, 'bin'), join(bare, 'bin'), { recursive: true })
    writeFileSync(join(bare, 'bin', 'entry.cjs'), PROGRAM)
    mkdirSync(join(bare, 'tools'))
    symlinkSync(process.execPath, join(bare, 'tools', 'node'))
    const env = { ...process.env, PATH: `${join(bare, 'tools')}:/usr/bin:/bin` }
    assert.equal((await run([join(bare, 'bin', 'hyperkube'), 'echo'], { env })).code, 5)
  })
})

/** Waits until no process has this id. A zombie is gone: only its parent has not looked yet. */
async function gone(pid: number): Promise<void> {
  const patience = AbortSignal.timeout(10_000)
  while (isAlive(pid)) await sleep(realClock, 10, patience)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    const status = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : ''
    return !/^\d+ \(.*\) [ZX]/.test(status)
  } catch {
    return false
  }
}
