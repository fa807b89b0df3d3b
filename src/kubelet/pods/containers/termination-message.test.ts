import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ContainerStatus } from '#apis/wire/cri.ts'

import { ANNOTATIONS } from '../container-config.ts'
import type { PodFiles } from '../pod-files.ts'
import { readTerminationMessage } from './termination-message.ts'

const messageOf = (log: string, message = '', exitCode = 1): Promise<string> => {
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
  return readTerminationMessage(files, status, 1)
}

test('the termination message of a failed container is the end of its log if it wrote no message', async () => {
  const at = '2026-11-15T10:13:59.271175292Z'
  assert.equal(await messageOf(`${at} stdout P DONE\n`), 'DONE')
  assert.equal(await messageOf(`${at} stdout F DONE\n`), 'DONE\n')
  assert.equal(
    await messageOf(`cut off\n${at} stderr F one\n${at} stdout P two, \n${at} stdout F three\n`),
    'one\ntwo, three\n',
  )
  // Timestamps in other zones have an offset.
  assert.equal(await messageOf('2026-11-15T10:13:59.27+01:00 stderr F here\n'), 'here\n')
  assert.equal(await messageOf(`${at} stdout F DONE\n`, 'OK'), 'OK')
  assert.equal(await messageOf(`${at} stdout F DONE\n`, '', 0), '')
})
