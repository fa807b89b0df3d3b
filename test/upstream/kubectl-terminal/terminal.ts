/** Controls a terminal for tests: tmux on a separate socket. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'

const run = promisify(execFile)

export interface Terminal extends AsyncDisposable {
  /** Keys by tmux's names (`Enter`, `C-c`, `Escape`), or text. */
  press(...keys: readonly string[]): Promise<void>
  resize(columns: number, rows: number): Promise<void>
  /** Waits until what is seen matches. Rejects with what was seen instead. */
  sees(pattern: RegExp): Promise<string>
}

const PATIENCE_MS = 60_000
const LOOK_MS = 50

let opened = 0

/** `folder`: the location of the socket; `env`: the environment of the shell. */
export async function openTerminal(
  folder: string,
  env: Readonly<Record<string, string>>,
  [columns, rows]: readonly [number, number],
): Promise<Terminal> {
  // A server that ends holds its socket for a moment.
  const socket = join(folder, `tmux-${opened++}`)
  const tmux = async (...args: readonly string[]): Promise<string> => {
    const { stdout } = await run('tmux', ['-S', socket, '-f', '/dev/null', ...args], { env: { ...env } })
    return stdout
  }
  const shell = ['env', ...Object.entries(env).map(([name, value]) => `${name}=${value}`), 'bash', '--norc', '-i']
  await tmux('new-session', '-d', '-s', 'it', '-x', String(columns), '-y', String(rows), ...shell)
  await tmux('set-option', '-t', 'it', 'status', 'off')
  const screen = (): Promise<string> => tmux('capture-pane', '-p', '-t', 'it')
  return {
    async press(...keys) {
      for (const key of keys) await tmux('send-keys', '-t', 'it', ...(isNamed(key) ? [key] : ['-l', key]))
    },
    async resize(width, height) {
      await tmux('resize-window', '-t', 'it', '-x', String(width), '-y', String(height))
    },
    async sees(pattern) {
      const until = realClock.elapsed() + PATIENCE_MS
      for (;;) {
        const seen = await screen()
        if (pattern.test(seen)) return seen
        if (realClock.elapsed() > until) throw new Error(`${String(pattern)} is not to be seen:\n${seen.trimEnd()}`)
        await sleep(realClock, LOOK_MS)
      }
    },
    async [Symbol.asyncDispose]() {
      await tmux('kill-server')
    },
  }
}

function isNamed(key: string): boolean {
  return /^(?:[CM]-.|Enter|Escape|Up|Down)$/.test(key)
}
