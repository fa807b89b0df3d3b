import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { checkHostPath } from './host-path-check.ts'

test('checkHostPath() checks the type of a hostPath and creates it for the OrCreate types', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'host-path-'))
  t.after(() => rm(dir, { recursive: true }))
  const made = join(dir, 'a/b')
  const file = join(dir, 'file')
  const socket = join(dir, 'socket')
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  t.after(() => server.close())
  await checkHostPath(join(dir, 'nothing'), '')
  await checkHostPath(made, 'DirectoryOrCreate')
  assert.equal((await stat(made)).mode & 0o777, 0o755)
  await checkHostPath(made, 'DirectoryOrCreate')
  await checkHostPath(made, 'Directory')
  await checkHostPath(file, 'FileOrCreate')
  await checkHostPath(file, 'File')
  await checkHostPath(socket, 'Socket')
  await checkHostPath('/dev/null', 'CharDevice')
  const refused: readonly (readonly [path: string, type: string, message: string])[] = [
    [file, 'Directory', `hostPath type check failed: ${file} is not a directory`],
    [file, 'DirectoryOrCreate', `hostPath type check failed: ${file} is not a directory`],
    [made, 'File', `hostPath type check failed: ${made} is not a file`],
    [made, 'FileOrCreate', `hostPath type check failed: ${made} is not a file`],
    [file, 'Socket', `hostPath type check failed: ${file} is not a socket file`],
    [file, 'CharDevice', `hostPath type check failed: ${file} is not a character device`],
    ['/dev/null', 'BlockDevice', 'hostPath type check failed: /dev/null is not a block device'],
    [file, 'Pipe', 'Pipe is an invalid volume type'],
  ]
  for (const [path, type, message] of refused) await assert.rejects(checkHostPath(path, type), { message })
})
