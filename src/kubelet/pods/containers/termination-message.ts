/** Reads the termination message of a container, or the end of its log. */
import type { ContainerStatus } from '#apis/wire/cri.ts'

import { ANNOTATIONS } from '../container-config.ts'
import type { PodFiles } from '../pod-files.ts'

const MAX_BYTES = 4096
/** For all containers of a pod together. */
const MAX_POD_BYTES = 12 * 1024
const MAX_LOG_BYTES = 2048
const MAX_LOG_LINES = 80

export async function readTerminationMessage(
  files: PodFiles,
  status: ContainerStatus,
  containers: number,
): Promise<string> {
  const path = status.annotations.get(ANNOTATIONS.messagePath) ?? ''
  const maxBytes = Math.min(MAX_BYTES, Math.trunc(MAX_POD_BYTES / Math.max(containers, 1)))
  const { hostPath } = status.mounts.find(({ containerPath }) => containerPath === path) ?? {}
  const text = hostPath === undefined ? '' : await files.tail(hostPath, maxBytes)
  if (text !== '' || status.exitCode === 0) return text
  if (status.annotations.get(ANNOTATIONS.messagePolicy) !== 'FallbackToLogsOnError') return ''
  const log = await files.tail(status.logPath, MAX_LOG_BYTES * 2)
  // `2026-11-15T10:13:59.271175292Z stderr F text`; the first line may be cut.
  const lines = log.split('\n').flatMap((line) => {
    const [, tag, text = ''] = /^\S+ (?:stdout|stderr) ([FP])\S* (.*)$/.exec(line) ?? []
    // Tag P is a partial line without its line end.
    return tag === undefined ? [] : tag === 'P' ? text : `${text}\n`
  })
  return lines.slice(-MAX_LOG_LINES).join('').slice(-Math.min(MAX_LOG_BYTES, maxBytes))
}
