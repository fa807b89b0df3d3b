/** The kubeconfig of an earlier state: the current context, where the server has the path of a moment. */
import { dirname, isAbsolute, resolve } from 'node:path'

import type { JsonObject } from '#lib/json/value.ts'
import type { ProgramContext } from '#lib/program.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'

import { configFiles, readConfiguration } from './files.ts'
import { minified } from './showing.ts'
import { type Configuration, configurationValue, SECTIONS, type SectionName, type Stanza } from './stanzas.ts'

export interface PastConfigContext extends Pick<ProgramContext, 'env' | 'cwd'> {
  readonly flags: { readonly kubeconfig: string; readonly context: string }
}

/** The text of the kubeconfig. `moment` is one of a path. Throws KubectlError, ConfigError. */
export async function pastKubeconfig(context: PastConfigContext, moment: string): Promise<string> {
  const whole = await readConfiguration(await configFiles(context))
  const chosen = minified({ ...whole, currentContext: context.flags.context || whole.currentContext })
  return stringifyYaml(configurationValue(atMoment(chosen, moment, context.cwd)))
}

/** Its paths are absolute, because the text may be stored in any folder. */
export function atMoment(config: Configuration, moment: string, cwd: string): Configuration {
  const section = (name: SectionName): Map<string, Stanza> =>
    new Map([...config[name]].map(([key, stanza]) => [key, withAbsolutePaths(stanza, SECTIONS[name].paths, cwd)]))
  const clusters = [...section('clusters')].map(([key, { fields, ...stanza }]): [string, Stanza] => {
    const { server } = fields
    const changed = typeof server === 'string' ? { ...fields, server: serverAt(server, moment) } : fields
    return [key, { ...stanza, fields: changed }]
  })
  return { ...config, clusters: new Map(clusters), users: section('users') }
}

/** A server that has the path of another moment gets this one instead. */
function serverAt(server: string, moment: string): string {
  return `${server.replace(/\/$/, '').replace(/\/past\/[^/]+$/, '')}/past/${moment}`
}

function withAbsolutePaths({ fields, ...stanza }: Stanza, names: readonly string[], cwd: string): Stanza {
  const absolute = (path: string): string => (isAbsolute(path) ? path : resolve(cwd, dirname(stanza.origin), path))
  const changed: JsonObject = Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      names.includes(name) && typeof value === 'string' && value !== '' ? absolute(value) : value,
    ]),
  )
  return { ...stanza, fields: changed }
}
