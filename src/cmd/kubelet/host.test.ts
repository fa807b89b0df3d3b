import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import type { KubeletConfiguration } from '#kubelet/configuration/configuration.ts'
import { realClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'

import { prepareHost } from './host.ts'

test('the kubelet sets kernel parameters, or reports wrong ones with protectKernelDefaults', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sysctls-'))
  t.after(() => rm(folder, { recursive: true }))
  const setting = join(folder, 'vm/overcommit_memory')
  await mkdir(join(folder, 'vm'))
  await writeFile(setting, '0\n')
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock: realClock })
  const prepare = (fields: Partial<KubeletConfiguration>): Promise<void> => {
    const configuration = { failSwapOn: false, ...fields } as KubeletConfiguration
    return prepareHost({ configuration, log, isEnabled: () => false }, folder)
  }
  await assert.rejects(prepare({ protectKernelDefaults: true }), {
    name: 'ProgramError',
    message:
      'Failed to start ContainerManager: invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0',
  })
  assert.equal(await readFile(setting, 'utf8'), '0\n')
  await prepare({})
  assert.equal(await readFile(setting, 'utf8'), '1')
  await prepare({ protectKernelDefaults: true })
})
