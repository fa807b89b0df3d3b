/** Writes the systemd unit file of a service. Pure. */
import { unitValue, unitWord } from '#lib/systemd-text.ts'

import type { ServiceSpec } from '../machine.ts'
import { serviceDigest } from '../service-digest.ts'
import { unitName } from './services.ts'

const STOP_SECONDS = 30

/** Deterministic. systemd ignores keys that begin with X-. */
export function systemdUnit(service: ServiceSpec): string {
  const { description, command, env = {}, envFile, after = [], stopSeconds = STOP_SECONDS, leavesChildren } = service
  const earlier = after.map((name) => `${unitName(name)}.service`)
  return [
    '# Written by hyperkube build; changes are lost.',
    '[Unit]',
    `Description=${unitValue(flat(description))}`,
    `After=${['network-online.target', ...earlier].join(' ')}`,
    'Wants=network-online.target',
    'StartLimitIntervalSec=0',
    `X-Digest=${serviceDigest(service)}`,
    '',
    '[Service]',
    `ExecStart=${command.map((part) => unitWord(flat(part))).join(' ')}`,
    ...Object.entries(env).map(([key, value]) => `Environment=${unitWord(flat(`${key}=${value}`))}`),
    ...(envFile === undefined ? [] : [`EnvironmentFile=-${unitValue(flat(envFile))}`]),
    'Restart=always',
    'RestartSec=2',
    `TimeoutStopSec=${stopSeconds}`,
    ...(leavesChildren === true ? ['KillMode=process', 'Delegate=yes'] : []),
    'LimitNOFILE=1048576',
    'LimitNPROC=infinity',
    'TasksMax=infinity',
    'OOMScoreAdjust=-999',
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n')
}

/** Line breaks become spaces. */
const flat = (text: string): string => text.replaceAll(/[\r\n]+/g, ' ')
