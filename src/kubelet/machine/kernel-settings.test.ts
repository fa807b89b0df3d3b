import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { createLog, type Logger } from '#lib/log/log.ts'

import { applyKernelSettings } from './kernel-settings.ts'

const { logger: log }: { logger: Logger } = createLog({ stream: { write: (_, done) => done() }, clock: realClock })

async function kernelWith(t: TestContext, settings: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kernel-'))
  t.after(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(settings)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), `${text}\n`)
  }
  return folder
}

test('the kubelet corrects wrong kernel parameters, and ignores parameters that the kernel lacks', async (t) => {
  const folder = await kernelWith(t, { 'vm/overcommit_memory': '0', 'vm/panic_on_oom': '0', 'kernel/panic': '0' })
  await applyKernelSettings({ folder, log, protects: false })
  const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8')
  assert.deepEqual(await Promise.all(['vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic'].map(read)), [
    '1',
    '0\n',
    '10',
  ])
})

test('the kubelet reports all wrong kernel parameters with protectKernelDefaults, and changes none', async (t) => {
  const folder = await kernelWith(t, { 'vm/overcommit_memory': '0', 'vm/panic_on_oom': '0', 'kernel/panic': '0' })
  const first = 'invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0'
  const second = 'invalid kernel flag: kernel/panic, expected value: 10, actual value: 0'
  await assert.rejects(applyKernelSettings({ folder, log, protects: true }), { message: `[${first}, ${second}]` })
  assert.equal(await readFile(join(folder, 'kernel/panic'), 'utf8'), '0\n')
  await writeFile(join(folder, 'kernel/panic'), '10\n')
  await assert.rejects(applyKernelSettings({ folder, log, protects: true }), { message: first })
  await writeFile(join(folder, 'vm/overcommit_memory'), '1\n')
  await applyKernelSettings({ folder, log, protects: true })
})

test('a failed write of a kernel parameter throws, unless the caller ignores failures', async (t) => {
  const folder = await kernelWith(t, { 'kernel/panic': '0' })
  // A path that even root cannot write.
  await rm(join(folder, 'kernel/panic'))
  await symlink('/proc/uptime', join(folder, 'kernel/panic'))
  await assert.rejects(applyKernelSettings({ folder, log, protects: false }), { message: /^E[A-Z]+: / })
  await applyKernelSettings({ folder, log, protects: false, isTolerant: true })
})
