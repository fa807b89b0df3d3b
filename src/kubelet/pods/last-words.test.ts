import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ContainerStatus } from '../cri/container-messages.ts'
import { ANNOTATIONS } from './container-config.ts'
import { lastWordsOf } from './last-words.ts'
import type { PodFiles } from './pod-files.ts'

const saidBy = (log: string, message = '', exitCode = 1): Promise<string> => {
  const status = {
    annotations: new Map([
      [ANNOTATIONS.messagePath, '/dev/termination-log'],
      [ANNOTATIONS.messagePolicy, 'FallbackToLogsOnError'],
    ]),
    mounts: [{ containerPath: '/dev/termination-log', hostPath: '/message' }],
    logPath: '/log',
    exitCode,
  } as unknown as ContainerStatus
  const files = { tail: async (path: string) => (path === '/log' ? log : message) } as unknown as PodFiles
  return lastWordsOf(files, status, 1)
}

test('a container that failed without a message is quoted, with the line ends that it wrote', async () => {
  const at = '2026-11-15T10:13:59.271175292Z'
  assert.equal(await saidBy(`${at} stdout P DONE\n`), 'DONE')
  assert.equal(await saidBy(`${at} stdout F DONE\n`), 'DONE\n')
  assert.equal(
    await saidBy(`cut off\n${at} stderr F one\n${at} stdout P two, \n${at} stdout F three\n`),
    'one\ntwo, three\n',
  )
  // Times of other places have an offset.
  assert.equal(await saidBy('2026-11-15T10:13:59.27+01:00 stderr F here\n'), 'here\n')
  assert.equal(await saidBy(`${at} stdout F DONE\n`, 'OK'), 'OK')
  assert.equal(await saidBy(`${at} stdout F DONE\n`, '', 0), '')
})
