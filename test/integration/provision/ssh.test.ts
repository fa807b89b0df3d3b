/**
 * Tests provisioning over SSH: the system's client, a real sshd on the loopback, and our program on the remote side.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'

import { eventually } from '#kits/lib/eventually.ts'
import { tarArchive } from '#lib/files/tar-write.ts'
import { sendFile } from '#provision/apply/upload.ts'
import type { Machine } from '#provision/machine.ts'
import type { Payload } from '#provision/payload.ts'
import { sha256 } from '#provision/service-digest.ts'
import { connectBySsh, type SshConnectOptions } from '#provision/ssh/connect.ts'
import { readKnownHosts } from '#provision/ssh/known-hosts.ts'

import { HYPERKUBE } from '../../upstream/ours.ts'
import { type Sshd, startSshd, whyNoSshd } from './sshd.ts'

const skip = await whyNoSshd()

/** A small payload instead of the real program: a script that starts the local one. */
async function smallPayload(folder: string): Promise<Payload> {
  const script = `#!/bin/sh\nexec ${HYPERKUBE} "$@"\n`
  const bytes = gzipSync(tarArchive([{ name: 'bin/hyperkube', mode: 0o755, content: Buffer.from(script) }]))
  const file = join(folder, 'program.tar.gz')
  await writeFile(file, bytes)
  return { file, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}

async function optionsFor(sshd: Sshd): Promise<SshConnectOptions & { readonly payloadFile: Payload }> {
  const payloadFile = await smallPayload(sshd.folder)
  return {
    name: 'one',
    target: { address: '127.0.0.1', port: sshd.port, user: 'root', keyFile: sshd.keyFile },
    knownHostsFile: join(sshd.folder, 'known_hosts'),
    hasPassphrase: false,
    connectSeconds: 10,
    folder: sshd.folder,
    home: join(sshd.folder, 'home'),
    payload: () => Promise.resolve(payloadFile),
    payloadFile,
    installs: true,
    isHere: false,
    env: process.env,
  }
}

const never = new AbortController().signal

async function open(options: SshConnectOptions, closing: AsyncDisposableStack): Promise<Machine> {
  const connected = await connectBySsh(options, never)
  closing.defer(() => connected.close())
  assert.ok(connected.machine)
  return connected.machine
}

test('hyperkube build inspects a machine without changes, and installs its program later', { skip }, async () => {
  await using closing = new AsyncDisposableStack()
  const sshd = await startSshd(closing)
  const options = await optionsFor(sshd)
  const looked = await connectBySsh({ ...options, installs: false }, never)
  await looked.close()
  assert.equal(looked.machine, undefined)
  await assert.rejects(stat(options.home), /ENOENT/)
  const machine = await open(options, closing)
  const { hostname, kernel } = await machine.facts({})
  assert.ok(hostname !== '' && kernel !== '')
  const again = await connectBySsh({ ...options, installs: false }, never)
  assert.ok(again.machine)
  await again.close()
  const [known] = readKnownHosts(await readFile(options.knownHostsFile, 'utf8'))
  assert.match(known?.fingerprint ?? '', /^SHA256:\S{43}$/)
})

test(
  'hyperkube build continues an interrupted upload of its program, and refuses a corrupted one',
  { skip },
  async () => {
    await using closing = new AsyncDisposableStack()
    const sshd = await startSshd(closing)
    const options = await optionsFor(sshd)
    const { file, size, sha256: digest } = options.payloadFile
    const part = join(options.home, 'programs', `${digest}.part`)
    await mkdir(join(options.home, 'programs'), { recursive: true })
    await writeFile(part, Buffer.alloc(10))
    await assert.rejects(connectBySsh(options, never), /not uploaded correctly/)
    await assert.rejects(stat(part), /ENOENT/)
    await writeFile(part, (await readFile(file)).subarray(0, 20))
    let sent = 0
    const connected = await connectBySsh({ ...options, progress: (bytes) => (sent = bytes) }, never)
    await connected.close()
    assert.equal(sent, size)
    assert.deepEqual(await readdir(join(options.home, 'programs')), [digest])
  },
)

test('hyperkube build refuses a machine with a changed host key', { skip }, async () => {
  await using closing = new AsyncDisposableStack()
  const sshd = await startSshd(closing)
  const options = await optionsFor(sshd)
  await (await connectBySsh(options, never)).close()
  await sshd.changeHostKey()
  await assert.rejects(connectBySsh(options, never), /REMOTE HOST IDENTIFICATION HAS CHANGED|verification failed/)
})

test('hyperkube build reaches a machine through a bastion host', { skip }, async () => {
  await using closing = new AsyncDisposableStack()
  const [sshd, bastion] = await Promise.all([startSshd(closing), startSshd(closing)])
  const options = await optionsFor(sshd)
  const through = { address: '127.0.0.1', port: bastion.port, user: 'root', keyFile: bastion.keyFile }
  const machine = await open({ ...options, bastion: through }, closing)
  assert.equal((await machine.run({ command: ['printf', '%s', 'a b'], timeoutMs: 5000 })).stdout, 'a b')
})

test('hyperkube build creates and removes files, uploads, programs and services', { skip }, async () => {
  await using closing = new AsyncDisposableStack()
  const sshd = await startSshd(closing)
  const options = await optionsFor(sshd)
  const machine = await open(options, closing)
  closing.defer(async () => void (await machine.restore({}).catch(() => undefined)))
  const place = join(sshd.folder, 'etc', 'deep')
  const path = join(place, "it's a file")
  await machine.write({ path, mode: 0o640, content: Buffer.from('one') })
  const { files } = await machine.look({ files: [path, '/no/such'], services: ['none'] })
  assert.equal(files[path]?.mode, 0o640)
  assert.equal(files[path]?.digest, sha256('one'))
  assert.equal(files['/no/such'], undefined)
  const large = join(sshd.folder, 'large')
  const bytes = Buffer.alloc(9 << 20, 7)
  await writeFile(large, bytes)
  const upload = { source: large, path: join(place, 'copy'), mode: 0o755, sha256: sha256(bytes) }
  await sendFile(machine, upload, never)
  assert.equal((await stat(upload.path)).size, bytes.length)
  const outcome = await machine.run({ command: ['cat'], content: Buffer.from('$HOME `x`'), timeoutMs: 5000 })
  assert.deepEqual(outcome, { code: 0, stdout: '$HOME `x`', stderr: '' })
  const mark = join(sshd.folder, 'lives')
  const service = {
    name: 'test-lives',
    description: 'says that it lives',
    command: ['/bin/sh', '-c', 'echo life >>"$MARK"; exec sleep 3600'],
    env: { MARK: mark },
  }
  await machine.serve({ service })
  await eventually(
    () => readFile(mark, 'utf8').catch(() => ''),
    (text) => text === 'life\n',
  )
  const lives = await machine.look({ files: [], services: ['test-lives'] })
  assert.equal(lives.services['test-lives']?.isRunning, true)
  await machine.restore({})
  await assert.rejects(stat(join(sshd.folder, 'etc')), /ENOENT/)
  const { services } = await machine.look({ files: [], services: ['test-lives'] })
  assert.equal(services['test-lives'], undefined)
})

test(
  'hyperkube build needs no SSH server for the local machine',
  { skip: process.getuid?.() === 0 ? false : 'needs root' },
  async () => {
    await using closing = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-here-'))
    closing.defer(() => rm(folder, { recursive: true }))
    const payload = await smallPayload(folder)
    const machine = await open(
      {
        name: 'here',
        target: { address: '127.0.0.1', port: 1, user: 'root' },
        knownHostsFile: join(folder, 'known_hosts'),
        hasPassphrase: false,
        connectSeconds: 10,
        folder,
        home: join(folder, 'home'),
        payload: () => Promise.resolve(payload),
        installs: true,
        isHere: true,
        env: process.env,
      },
      closing,
    )
    const { hostname: name } = await machine.facts({})
    assert.equal(name, hostname())
  },
)
