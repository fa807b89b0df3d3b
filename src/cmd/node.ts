/** `hyperkube node`: keeps the three processes of a worker alive, and shows how it is. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { parseYaml } from '#lib/yaml.ts'
import { kubernetesVersion } from '#model/version.ts'
import { linuxHost } from '#supervisor/linux/host.ts'
import { EXIT_CODES } from '#supervisor/outcome.ts'
import { readSettings } from '#supervisor/settings-file.ts'
import { Supervisor, type SupervisorStatus } from '#supervisor/supervisor.ts'

const STATUS_FILE = '/run/hyperkube/node/status.json'

export const node: Program = defineProgram({
  name: 'node',
  long:
    'node keeps kubelet, flanneld and kube-proxy alive on this machine.\n\n' +
    'node run      looks at them again and again, and starts what is missing\n' +
    'node once     does so once: exit code 0 when all is well, 1 when a person has to look, 2 when another try may help\n' +
    'node status   shows what the supervisor has seen and done',
  version: kubernetesVersion(),
  operands: true,
  flags: {
    node: {
      config: flag(string, '/etc/kubernetes/node.yaml', '`file` that says what this node is to be'),
      'kubelet-health': flag(
        string,
        'http://127.0.0.1:10248/healthz',
        '`address` where kubelet says that it is well; none: not asked',
      ),
      'kube-proxy-health': flag(
        string,
        'http://127.0.0.1:10256/livez',
        '`address` where kube-proxy does; none: not asked',
      ),
      root: flag(string, '/', '`folder` below which its files are, for machines that share one'),
    },
  },
  async run({ flags, operands, stdout, clock, random, log, ...context }, signal) {
    const [command = 'run', ...rest] = operands
    if (rest.length > 0 || !['run', 'once', 'status'].includes(command))
      throw new ProgramError(`unknown command "${operands.join(' ')}" for "node"; there are run, once, status`)
    const statusFile = join(flags.root, STATUS_FILE)
    if (command === 'status') {
      const text = await readFile(statusFile, 'utf8').catch(() => undefined)
      if (text === undefined) throw new ProgramError(`no supervisor has left ${statusFile}`)
      stdout.write(text)
      return (JSON.parse(text) as SupervisorStatus).last?.kind === 'ok' ? 0 : 1
    }
    const settings = readSettings(parseYaml(await context.readFile(flags.config)))
    const http = createHttpClient({ clock })
    const host = linuxHost({
      clock,
      http,
      root: flags.root,
      say: (text) => log.info(text),
      ended: () => supervisor.wake(),
    })
    const supervisor: Supervisor = new Supervisor({
      host,
      random,
      settings,
      health: { kubelet: flags['kubelet-health'], 'kube-proxy': flags['kube-proxy-health'] },
      report({ reason, message }) {
        log.info(message, { reason })
        const text = `${JSON.stringify(supervisor.status, undefined, 2)}\n`
        void writeFileAtomically(statusFile, text, { mode: 0o600 }).catch((error: unknown) =>
          log.error(error, 'cannot leave the status'),
        )
      },
    })
    try {
      if (command === 'once') return EXIT_CODES[(await supervisor.look(signal)).kind]
      await supervisor.run(signal)
      return 0
    } finally {
      http.close()
    }
  },
})
