/** Every kind served, in no particular order: the server finds them by name. One line each. */
import type { Resource } from '#apiserver/registry/resource.ts'

import { configMap } from './core/configmap.ts'

export const resources: readonly Resource[] = [configMap]
