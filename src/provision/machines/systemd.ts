/** Manages services through systemd. */
import { execFile } from 'node:child_process'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'

import type { ServiceSpec } from '../machine.ts'
import { serviceDigest } from '../service-digest.ts'
import type { Journal } from './journal.ts'
import { type Services, unitName } from './services.ts'
import { systemdUnit } from './systemd-unit.ts'

const UNITS = '/etc/systemd/system'

export interface SystemdOptions {
  /** The folder of service definitions. */
  readonly folder: string
  readonly journal: Journal
}

export function systemdServices(options: SystemdOptions): Services {
  const { folder, journal } = options
  const unitFile = (name: string): string => join(UNITS, `${unitName(name)}.service`)
  const specFile = (name: string): string => join(folder, `${name}.json`)
  const write = async (path: string, text: string, mode: number): Promise<void> => {
    await journal.file(path)
    await writeFileAtomically(path, text, { mode })
  }
  const retire = async (name: string): Promise<void> => {
    if ((await readText(unitFile(name))) !== undefined) {
      await systemctl('disable', '--now', unitName(name))
      await rm(unitFile(name), { force: true })
      await systemctl('daemon-reload')
    }
    await rm(specFile(name), { force: true })
  }
  return {
    async look(name) {
      const [unit, spec] = await Promise.all([readText(unitFile(name)), readText(specFile(name))])
      if (unit === undefined || spec === undefined) return undefined
      const service = JSON.parse(spec) as ServiceSpec
      const { stdout } = await systemctl('show', '--property=ActiveState', '--value', unitName(name))
      return {
        digest: systemdUnit(service) === unit ? serviceDigest(service) : 'changed by hand',
        isRunning: stdout.trim() === 'active',
      }
    },
    async serve(service) {
      const { name } = service
      if ((await readText(unitFile(name))) !== undefined) await systemctl('stop', unitName(name))
      await write(specFile(name), `${JSON.stringify(service, undefined, 2)}\n`, 0o600)
      // Its environment may contain secrets.
      await write(unitFile(name), systemdUnit(service), 0o600)
      await systemctl('daemon-reload')
      await journal.file(join(UNITS, 'multi-user.target.wants', `${unitName(name)}.service`))
      await systemctl('enable', '--now', unitName(name))
    },
    retire,
    async tail(name, lines) {
      const args = ['--unit', unitName(name), '--lines', String(lines), '--no-pager', '--output=cat']
      return (await promisify(execFile)('journalctl', args)).stdout
    },
    async leave() {
      const files = await readdir(folder).catch(() => [])
      for (const file of files) await retire(file.replace(/\.json$/, ''))
    },
  }
}

function systemctl(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)('systemctl', args)
}

function readText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined)
}
