import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { MessageChannel } from 'node:worker_threads'

import { type FromWriter, packOperations, packWrites, type ToWriter } from './messages.ts'
import { runWriter } from './writer-thread.ts'

it('the SQLite writer thread reports a problem before it rejects a write because of it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sqlite-writer-'))
  t.after(() => rm(folder, { recursive: true }))
  const { port1, port2 } = new MessageChannel()
  const received: string[] = []
  port2.on('message', (message: FromWriter) => received.push(message.type))
  runWriter(port1, { role: 'writer', file: join(folder, 'store.db'), quotaBytes: 1, ballastBytes: 0 })
  const post = (message: ToWriter): void => port2.postMessage(message)
  post(packOperations([['commit', packWrites([{ key: 'a', value: Buffer.from('1') }])]], 1))
  post({ type: 'close' })
  await once(port2, 'close')
  const answers = received.filter((type) => type === 'trouble' || type === 'results')
  assert.deepEqual(answers, ['trouble', 'results'])
})
