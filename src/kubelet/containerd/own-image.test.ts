import assert from 'node:assert/strict'
import { test } from 'node:test'

import { librariesIn } from './own-image.ts'

test('librariesIn() reads what the linker says, itself included and the kernel left out', () => {
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
