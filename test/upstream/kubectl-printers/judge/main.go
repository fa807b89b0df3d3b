// Reads cases, one JSON object a line, and says of each what kubectl's own printers make of it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
)

type printCase struct {
	Printer  string            `json:"printer"`
	Template string            `json:"template"`
	Strict   bool              `json:"strict"`
	AsJSON   bool              `json:"asJson"`
	Objects  []json.RawMessage `json:"objects"`
	Options  tableOptions      `json:"options"`
}

type tableOptions struct {
	NoHeaders     bool     `json:"noHeaders"`
	Wide          bool     `json:"wide"`
	WithNamespace bool     `json:"withNamespace"`
	ShowLabels    bool     `json:"showLabels"`
	LabelColumns  []string `json:"labelColumns"`
}

type outcome struct {
	Out   string `json:"out"`
	Error string `json:"error,omitempty"`
}

func printerOf(one printCase) (printers.ResourcePrinter, error) {
	switch one.Printer {
	case "jsonpath":
		printer, err := printers.NewJSONPathPrinter(one.Template)
		if err != nil {
			return nil, err
		}
		printer.AllowMissingKeys(!one.Strict)
		printer.EnableJSONOutput(one.AsJSON)
		return printer, nil
	case "template":
		printer, err := printers.NewGoTemplatePrinter([]byte(one.Template))
		if err != nil {
			return nil, err
		}
		printer.AllowMissingKeys(!one.Strict)
		return printer, nil
	case "columns":
		return get.NewCustomColumnsPrinterFromSpec(one.Template, unstructured.UnstructuredJSONScheme, one.Options.NoHeaders)
	case "yaml":
		return &printers.YAMLPrinter{}, nil
	case "json":
		return &printers.JSONPrinter{}, nil
	case "kyaml":
		return &printers.KYAMLPrinter{}, nil
	case "name":
		return &printers.NamePrinter{}, nil
	}
	table := printers.NewTablePrinter(printers.PrintOptions{
		NoHeaders: one.Options.NoHeaders, Wide: one.Options.Wide, WithNamespace: one.Options.WithNamespace,
		ShowLabels: one.Options.ShowLabels, ColumnLabels: one.Options.LabelColumns,
	})
	return &get.TablePrinter{Delegate: table}, nil
}

func run(one printCase) (result outcome) {
	var out bytes.Buffer
	printer, err := printerOf(one)
	if err != nil {
		return outcome{Error: err.Error()}
	}
	for _, raw := range one.Objects {
		var object runtime.Object
		object, err = runtime.Decode(unstructured.UnstructuredJSONScheme, raw)
		if err != nil {
			break
		}
		if err = printer.PrintObj(object, &out); err != nil {
			break
		}
	}
	result.Out = out.String()
	if err != nil {
		result.Error = err.Error()
	}
	return result
}


func main() {
	in := bufio.NewReader(os.Stdin)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	decoder := json.NewDecoder(in)
	for decoder.More() {
		var one printCase
		if err := decoder.Decode(&one); err != nil {
			panic(err)
		}
		encoder.Encode(safely(one))
	}
}

func safely(one printCase) (result outcome) {
	defer func() {
		if recover() != nil {
			result = outcome{Error: "panic"}
		}
	}()
	return run(one)
}
