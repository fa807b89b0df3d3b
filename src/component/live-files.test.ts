import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { ProgramError } from '#lib/program.ts'

import { createLiveFiles, type LiveFiles } from './live-files.ts'

interface World {
  readonly files: LiveFiles
  readonly disk: Map<string, string>
  readonly lines: string[]
  readonly clock: ReturnType<typeof createVirtualClock>
}

function setUp(): World {
  const disk = new Map([
    ['a', '1'],
    ['b', '2'],
  ])
  const lines: string[] = []
  const log: Logger = {
    info: (message) => void lines.push(message),
    error: (error, message) => void lines.push(`${message}: ${(error as Error).message}`),
    v: () => log,
    withValues: () => log,
    withName: () => log,
  }
  const clock = createVirtualClock()
  const readFile = (path: string): Promise<string> => {
    const text = disk.get(path)
    return text === undefined ? Promise.reject(new Error('ENOENT')) : Promise.resolve(text)
  }
  return { files: createLiveFiles({ clock, log, readFile }), disk, lines, clock }
}

const join = (texts: readonly string[]): { readonly text: string } => ({ text: texts.join('+') })

describe('files that are reloaded', () => {
  it('yield the same value until the content changes, and then a new one', async () => {
    const { files, disk, clock } = setUp()
    const changes: string[] = []
    const open = await files.open(['a', 'b'], join, ({ text }) => void changes.push(text))
    files.start(() => undefined)
    const first = open()
    await clock.advance(60_000)
    assert.equal(open(), first)
    disk.set('b', '3')
    await clock.advance(5000)
    assert.equal(open().text, '1+3')
    assert.deepEqual(changes, ['1+3'])
    files.close()
  })

  it('keep the old value while the new content is invalid, and log that', async () => {
    const { files, disk, lines } = setUp()
    const parse = ([text = '']: readonly string[]): string => {
      if (text === 'bad') throw new Error('Not good')
      return text
    }
    const open = await files.open(['a'], parse, (value) => {
      if (value === 'unwanted') throw new Error('Unwanted')
    })
    for (const text of [undefined, 'bad', 'unwanted']) {
      if (text === undefined) disk.delete('a')
      else disk.set('a', text)
      await files.poll()
      assert.equal(open(), '1')
    }
    disk.set('a', '4')
    await files.poll()
    assert.equal(open(), '4')
    assert.match(lines.join('\n'), /ENOENT\n.*Not good\n.*Unwanted\nReloaded changed file$/)
  })

  it('are named in the error at start if they are unusable', async () => {
    const { files } = setUp()
    await assert.rejects(
      files.open(['a', 'c'], join),
      (error) => error instanceof ProgramError && error.message === 'Cannot use "a" and "c": ENOENT',
    )
  })

  it('are no longer polled after close', async () => {
    const { files, disk, clock } = setUp()
    const open = await files.open(['a'], join)
    files.start(() => undefined)
    files.close()
    disk.set('a', '9')
    await clock.advance(60_000)
    assert.equal(open().text, '1')
  })
})
