/** Starts a private D-Bus message bus for a test. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

const BUS = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=PATH</listen>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*"/><allow own="*"/><allow receive_sender="*"/></policy>
</busconfig>`

/** Why it cannot run here. */
export const whyNoBus: string | undefined = existsSync('/usr/bin/dbus-daemon')
  ? undefined
  : 'there is no dbus-daemon here'

/** `path` is its socket. */
export async function startBus(t: TestContext, folder: string): Promise<{ path: string; daemon: ChildProcess }> {
  const path = join(folder, 'bus')
  await writeFile(`${path}.conf`, BUS.replace('PATH', path))
  const daemon = spawn('dbus-daemon', [`--config-file=${path}.conf`, '--nofork', '--print-address'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => void daemon.kill('SIGKILL'))
  await once(daemon.stdout, 'data')
  return { path, daemon }
}
